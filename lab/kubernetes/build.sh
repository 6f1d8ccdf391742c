#!/usr/bin/env bash
# Builds the programs of a Kubernetes cluster into a directory, from the Go module proxy: the control
# plane, the kubelet and kubectl of one version, CoreDNS and Helm. Two gigabytes and some 15 minutes the
# first time; what is there is not built again.
#
# Usage: lab/kubernetes/build.sh DIRECTORY [PROGRAM ...]
set -euo pipefail

# The newest Kubernetes whose kubelet runs with control groups of version 1, too.
kubernetes=1.34.1
coredns=v1.12.4
helm=v3.19.0

directory=$(realpath -m "$1")
shift
(($# > 0)) || set -- kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl coredns helm
mkdir -p "$directory"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0

# use MODULE REQUIRE...: begins a module in a directory of its own.
use() {
	mkdir "$work/$1"
	cd "$work/$1"
	go mod init "$1" 2>/dev/null
}

for program; do
	[[ -x $directory/$program ]] && continue
	printf 'build %s\n' "$program"
	if [[ $program == coredns ]]; then
		use coredns
		cat >main.go <<-'EOF'
			// CoreDNS with the plugins that a small cluster needs.
			package main

			import (
				_ "github.com/coredns/coredns/plugin/errors"
				_ "github.com/coredns/coredns/plugin/kubernetes"

				"github.com/coredns/coredns/core/dnsserver"
				"github.com/coredns/coredns/coremain"
			)

			func main() {
				dnsserver.Directives = []string{"errors", "kubernetes"}
				coremain.Run()
			}
		EOF
		go mod edit -require "github.com/coredns/coredns@$coredns"
		go build -trimpath -ldflags '-s -w' -o "$directory/coredns" .
		continue
	fi
	if [[ $program == helm ]]; then
		use helm
		go mod edit -require "helm.sh/helm/v3@$helm"
		go build -trimpath -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=$helm" -o "$directory/helm" helm.sh/helm/v3/cmd/helm
		continue
	fi
	if [[ ! -d $work/kubernetes ]]; then
		use kubernetes
		file=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
		# Its own repositories are directorys beside it there, and modules of their own here.
		# shellcheck disable=SC2046
		go mod edit -require "k8s.io/kubernetes@v$kubernetes" \
			$(sed -n "s|^\t\(k8s.io/[a-z-]*\) => ./staging/.*|-replace=\1=\1@v0.${kubernetes#1.}|p" "$file")
	fi
	cd "$work/kubernetes"
	go build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$kubernetes" \
		-o "$directory" "k8s.io/kubernetes/cmd/$program"
done
