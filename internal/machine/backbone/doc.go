// Package backbone decides which backbone a delegate of a fleet is in, as a state machine without
// I/O. Package fleet drives it, and internal/test/fleetsimulation drives it under seeds.
//
// The backbone is a group of the delegates of all zones. After a partition there are several. They
// become one by a rule that each delegate follows on its own: the lead of a zone, its oldest
// delegate, looks for zones that are not in its backbone, and leaves for the larger of two
// backbones. The other delegates follow the lead. So one process of each zone asks around.
//
//   - entering.go: a delegate without a backbone finds one, or creates one (enter).
//   - inside.go: a delegate leaves its backbone for another one, or because it has lost its quorum.
//   - view.go: which of two backbones is the larger one.
//
// Delegates announce their addresses in the backbone to their zone, where processes of other zones
// find them.
package backbone
