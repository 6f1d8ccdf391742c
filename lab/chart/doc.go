// Package chart draws figures as papers print them: axes with labels, a few
// curves that can be told apart without color, and a legend beside them. A
// [Chart] is plain data; [Chart.SVG] and [Chart.PNG] draw it.
package chart
