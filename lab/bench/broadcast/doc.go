// Package broadcast measures how long a broadcast takes to reach every live
// member, and how many a second do when they follow each other back to back.
//
// Pleach is compared with two systems that do nothing else, in the same run and
// interleaved with it: only a ratio of one run means anything on a machine that
// runs other programs too. Bare is a binomial tree over persistent connections;
// flat is a root that writes to all. Both send frames of the size of Pleach's.
// Members that forward frames join those that have arrived into one write.
//
// A [builtin] system says how one member works. A [group] is all members of a
// system with its own dead ones, within this process ([local]) or in processes of
// their own ([remote]). [Run] puts groups side by side. An external [System], such
// as those of lab/peers, brings a group of its own ([externalGroup]).
package broadcast
