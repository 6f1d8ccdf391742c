// Package fleet joins many groups into one fleet: zones, as the sites of a company or the
// racks of a large cluster, whose members reach each other across long links.
//
//	f, err := fleet.Join(ctx, fleet.Config{Zone: "fra", Seeds: seeds})
//	err = f.Broadcast(ctx, data)            // to every member of every zone
//	for m, err := range f.Messages(ctx) { … } // m.Zone, m.ID, m.Data
//	f.Zone().Broadcast(ctx, data)           // to this zone alone
//
// A zone is an ordinary group, with agreed views. The members that have been in it for
// longest, three of them, are its delegates: they are members of a second ordinary group,
// too, the backbone. One of them, the lead, sends the broadcasts of its zone to one
// delegate of each other zone, so that a message crosses each long link once. If it dies
// or gets stuck, the next one continues where it was.
//
// Messages of one process arrive once and in order, in all zones. A zone that was cut off
// gets what it has missed when it is back, from the logs of the others (Config.KeepBytes),
// and otherwise a [*LostError] that says how much is lost. There is no agreement across
// zones: what [Fleet.Zones] returns is as old as it says, and messages of different
// processes arrive in any order.
package fleet
