// Package fleet measures a fleet whose zones are all in this process, with delays between
// them: whether broadcasts arrive once and in order while delegates are killed, a zone is
// cut off and another one dies, how long they take, and how many messages cross the links
// between zones.
package fleet
