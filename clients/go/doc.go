// Package entail is a client of entail, a server of precomputed effective policies of Gateway API paths.
//
// There are three ways to get policies:
//
//   - [Client.Get] looks up one path with one call.
//   - [Client.BatchGet] looks up many paths, from one snapshot of the server.
//   - [NewMirror] follows a server and keeps a copy of the policies in memory. Look-ups in a [Mirror] do no I/O, do not
//     lock, and do not allocate: use it on the request path.
//
// A path is named from the Gateway down to the level at which a policy kind takes effect, such as
//
//	gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart/rules/pay
//
// and a rule without a name by its index, as in rules/#0. Kinds are named Kind.group.
//
// # Not known is not "no policy"
//
// A path that does not exist is an error. A path without policies is an answer without entries. It means "no policy" for
// a kind only if [SnapshotInfo.IsKnown] is true for the kind: the server may not be permitted to read it. An entry whose
// field unknown or not_computed is set does not say what is in effect either. A data plane that enforces policies rejects
// requests in these cases. Objects that paths consist of, such as Gateways and routes, are kinds as well: if their state
// is not COMPLETE, paths may be missing or old.
//
// # While the server is unreachable
//
// Calls fail with an [*Error] for which [IsRetryable] is true; they are never repeated by this package. A [Mirror] keeps
// its last copy without a time limit, reconnects with exponential backoff, and resumes: answers that did not change are
// neither sent nor compiled again, also after a restart of the server. [Mirror.Connected], [Mirror.Age] and
// [Mirror.Status] report how old the copy is, so that a data plane can decide when it is too old.
//
// The generated code of the API is in the package entailv1; see [Client.Policies] and [Client.Insight].
package entail
