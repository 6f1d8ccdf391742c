package discover

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/contrib/arbiter/kubernetes/account"
)

// twoSlices is what an API server says about a service of three pods, one of which is not ready.
const twoSlices = `{"kind": "EndpointSliceList", "items": [
  {"addressType": "IPv4", "endpoints": [
    {"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
    {"addresses": ["10.0.0.2"], "conditions": {"ready": false, "serving": false, "terminating": false}}]},
  {"addressType": "IPv6", "endpoints": [{"addresses": ["fd00::3"], "conditions": {"ready": true}}]},
  {"addressType": "IPv4", "endpoints": null}]}`

// An agent finds all pods of a service, ready or not, by the account of its pod, in the pod's namespace or in another.
func TestEndpointSlices(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		selected := r.URL.Query().Get("labelSelector") == "kubernetes.io/service-name=web"
		switch path := r.URL.Path; {
		case r.Header.Get("Authorization") != "Bearer mine" || !selected:
			w.WriteHeader(http.StatusForbidden)
		case path == "/apis/discovery.k8s.io/v1/namespaces/here/endpointslices":
			_, _ = fmt.Fprint(w, twoSlices)
		case path == "/apis/discovery.k8s.io/v1/namespaces/there/endpointslices":
			_, _ = fmt.Fprint(w, `{"items": []}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	directory := t.TempDir()
	for name, data := range map[string]string{
		"token": "mine\n", "namespace": "here\n",
		"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		seed string
		want []string
		err  string
	}{
		{"web:7000", []string{"10.0.0.1:7000", "10.0.0.2:7000", "[fd00::3]:7000"}, ""},
		{"there/web:7000", nil, ""},
		{"other:7000", nil, "403"},
	} {
		got, err := listEndpoints(t.Context(), account.Config{Server: server.URL, Directory: directory}, c.seed)
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil &&
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, %v, want %v, %q", c.seed, got, err, c.want, c.err)
		}
	}
}
