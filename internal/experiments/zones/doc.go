// Package zones simulates one broadcast to a fleet of zones, beside the same broadcast
// in one flat group and by gossip.
//
// A zone is a group whose lowest members are delegates. Delegates of all zones form a
// second group, the backbone. The origin broadcasts in its zone; the lead delegate there
// broadcasts on the backbone; each other zone's lead broadcasts in its zone. The other
// delegates watch, and take over what does not happen. A [Process] is one process's part:
// machines of package broadcast, one for each of these broadcasts, that share its ports.
package zones
