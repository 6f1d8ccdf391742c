// Package draw makes pictures of broadcasts: trees and the ring as text and as
// SVG, and the timeline of a simulated run. Pictures are where a gap is seen at
// a glance, so a picture that covers one of its own labels is a bug: labels that
// do not fit are left out.
package draw
