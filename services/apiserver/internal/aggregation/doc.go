// Package aggregation answers requests for the versions of groups that an APIService gives to a server from elsewhere,
// by handing them on to an endpoint of its Service. What the apiserver serves itself is never handed on; it has
// APIServices because clients look for them.
//
//	handler.go           a request on its way
//	extension.go         the server behind one APIService
//	aggregator.go        which there are, and what discovery tells of them
//	availability.go      asks each whether it answers, and writes that down
//	documents.go         what the servers say of their kinds by OpenAPI
//	kept.go              what they said when they were last asked
//	locals.go            keeps the APIServices of what is not handed on
//	priorities.go        where the versions stand that the apiserver serves itself
//	decide_target.go     where a Service's requests go (pure)
//	decide_answer.go     what an answer about a version's resources means (pure)
//	decide_document.go   what an answer about documents means (pure)
//	decide_condition.go  the condition Available (pure)
//	decide_local.go      which APIServices of what is not handed on are written (pure)
//	decide_group.go      a group in discovery (pure)
package aggregation
