// Package chart draws figures as papers print them: axes with labels, a few
// curves that can be distinguished without color, and a legend next to them. A
// [Chart] is plain data; [Chart.SVG] and [Chart.PNG] draw it.
package chart
