// Package tune chooses how to broadcast. It takes the number of processes, the
// network's LogP parameters, how many processes may be dead and the wanted
// reliability. For every dissemination it finds the distance that correction needs, by
// the formulas of Corrected Gossip (Eqs. 1–5), and checks it by simulation.
package tune
