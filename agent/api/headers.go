package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/pleach-go/pleach"
)

// HeaderPrefix begins the names of the HTTP fields of a request to send that are the header of the
// message: its keys are what follows, in lower case.
const HeaderPrefix = "Pleach-Header-"

// withHeader returns a context with the header that an HTTP request gives to its message.
func withHeader(ctx context.Context, fields http.Header) (context.Context, error) {
	var h pleach.Header
	for name, values := range fields {
		key, ok := strings.CutPrefix(name, HeaderPrefix)
		if !ok {
			continue
		}
		if h == nil {
			h = make(pleach.Header)
		}
		h[strings.ToLower(key)] = strings.Join(values, ",") // what several fields of one name mean
	}
	if h == nil {
		return ctx, nil
	}
	if err := h.Validate(); err != nil {
		return nil, BadRequest(err)
	}
	return pleach.WithHeader(ctx, h), nil
}

// HeaderVariables returns the header of a message as variables of the environment: PLEACH_HEADER_ and
// the key in upper case, with _ for "-" and ".".
func HeaderVariables(header map[string]string) []string {
	variables := make([]string, 0, len(header))
	for key, value := range header {
		name := strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(key))
		variables = append(variables, "PLEACH_HEADER_"+name+"="+value)
	}
	slices.Sort(variables)
	return variables
}
