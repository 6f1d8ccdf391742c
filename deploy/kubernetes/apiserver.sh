#!/usr/bin/env bash
# Builds kube-apiserver into a folder, from Go's module proxy: a gigabyte and ten minutes, the
# first time. The tests of the manifests use it, with etcd and kubectl.
#
# Usage: deploy/kubernetes/apiserver.sh FOLDER [VERSION]
set -euo pipefail

folder=$(realpath -m "$1")
version=${2:-1.32.13}
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOFLAGS=-mod=mod CGO_ENABLED=0

go mod init apiserver
file=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
# Its own repositories are folders beside it there, and modules of their own here.
go mod edit -require "k8s.io/kubernetes@v$version" \
	$(sed -n "s|^\t\(k8s.io/[a-z-]*\) => ./staging/.*|-replace=\1=\1@v0.${version#1.}|p" "$file")
go build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$version" -o "$folder" k8s.io/kubernetes/cmd/kube-apiserver
