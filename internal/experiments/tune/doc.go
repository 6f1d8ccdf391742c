// Package tune chooses how to broadcast: from the number of processes, the
// network's LogP parameters, how many may be dead and how sure the caller wants
// to be, it finds for every way to disseminate what correction must reach, by the
// formulas of Corrected Gossip (Eqs. 1–5), and checks each by simulation.
package tune
