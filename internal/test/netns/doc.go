// Package netns gives tests hosts: Linux network namespaces, each with an
// address and a cable to a switch that tests can pull. What loopback cannot show
// shows here, above all silence: a host that is cut off answers nothing, refuses
// nothing and resets nothing.
//
// It needs root and the ip command of iproute2; [New] skips the test where it
// cannot work. The switch is a bridge in a namespace of its own. A host is cut off
// by taking its port out of the bridge, or parted by moving it to another one. Its
// own side of the cable stays up, so that it does not notice either.
package netns
