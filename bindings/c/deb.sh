#!/bin/sh
# deb.sh LIBPLEACH OUT: packages for Debian, libpleach0 and libpleach-dev, from what make libpleach has built.
set -eu
built=$1 out=$2
version=$(sed -n 's/^Version: //p' "$built/libpleach.pc" | sed 's/\.dev/~dev/')
arch=$(dpkg --print-architecture)
lib=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# package NAME SECTION DEPENDS DESCRIPTION: the folder of that name, as a package.
package() {
	mkdir "$work/$1/DEBIAN"
	cat >"$work/$1/DEBIAN/control" <<END
Package: $1
Source: pleach
Version: $version
Architecture: $arch
Maintainer: The Pleach Authors <https://github.com/pleach-go/pleach>
Installed-Size: $(du -sk "$work/$1" | cut -f 1)
Section: $2
Priority: optional
Depends: $3
Homepage: https://github.com/pleach-go/pleach
Description: $4
 Processes of a job make collective calls, as with MPI. When one dies, a
 survivor takes over its task, and the result is the failure-free one.
END
	dpkg-deb --root-owner-group --build "$work/$1" "$out" >/dev/null
}

mkdir -p "$out" "$work/libpleach0/$lib" "$work/libpleach-dev/$lib/pkgconfig" "$work/libpleach-dev/usr/include"
cp -L "$built/libpleach.so" "$work/libpleach0/$lib/libpleach.so.0"
ln -s libpleach.so.0 "$work/libpleach-dev/$lib/libpleach.so"
cp "$built/pleach.h" "$work/libpleach-dev/usr/include"
sed "s|^libdir=.*|libdir=/$lib|; s|^includedir=.*|includedir=/usr/include|" "$built/libpleach.pc" >"$work/libpleach-dev/$lib/pkgconfig/libpleach.pc"
chmod -R u=rwX,go=rX "$work"
package libpleach0 libs 'libc6 (>= 2.34)' 'collective calls that finish although processes die'
package libpleach-dev libdevel "libpleach0 (= $version)" 'collective calls that finish although processes die: headers'
