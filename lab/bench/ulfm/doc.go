// Package ulfm kills ranks of an MPI program, and measures how soon the others continue
// by ULFM, the fault tolerance of MPI (Bland, Bouteiller, Herault, Bosilca and
// Dongarra, "Post-failure recovery of MPI communication capability", 2013). It needs
// an Open MPI 5 that is built with ULFM, in PATH or in a root directory, where the
// program is compiled. Each kill is a job of its own.
package ulfm
