// What a program in TypeScript does with the messages: names of fields, enums and oneofs are those of its generator.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  EffectivePolicyService,
  GetEffectivePoliciesRequestSchema,
} from "./entail/v1/effective_policy_pb.js";
import { PolicyInsightService } from "./entail/v1/policy_insight_pb.js";
import { KindStateSchema, KindState_State } from "./entail/v1/types_pb.js";

const path = "gateways/shop/web";
const request = create(GetEffectivePoliciesRequestSchema, {
  target: { case: "path", value: path },
  kinds: ["RetryPolicy.policies.bakery.example"],
});
const read = fromBinary(
  GetEffectivePoliciesRequestSchema,
  toBinary(GetEffectivePoliciesRequestSchema, request),
);
if (read.target.case !== "path" || read.target.value !== path) {
  throw new Error("a request is another one after it was encoded");
}
const kind = create(KindStateSchema, { kind: "A.x", state: KindState_State.STALE });
const methods = [
  EffectivePolicyService.method.getEffectivePolicies,
  PolicyInsightService.method.explain,
];
console.log(methods.map((method) => method.name).join(" "), KindState_State[kind.state]);
