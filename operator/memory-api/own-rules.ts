/** The CEL rules of `contract/policies.ts` in TypeScript, because nothing here evaluates CEL. */
import type { FieldFault } from '../contract/field-fault.ts'
import { CLUSTER_GPU_POLICY, VENDOR_NODE_POLICY } from '../contract/policies.ts'
import { CLUSTER_POLICY_NAME } from '../contract/names.ts'
import type { KubeObject } from '../ports/kube-api.ts'
import { isRecord } from './patches.ts'

type Rules = (object: KubeObject, before: KubeObject | null) => readonly FieldFault[]

export const OWN_RULES: Readonly<Record<string, Rules>> = {
  ClusterGPUPolicy: ({ metadata }) =>
    metadata.name === CLUSTER_POLICY_NAME
      ? []
      : CLUSTER_GPU_POLICY.rules.map(({ message }) => ({ path: '<nil>', message })),
  VendorNodePolicy: (object, before) =>
    before === null || nodeNameOf(object) === nodeNameOf(before)
      ? []
      : VENDOR_NODE_POLICY.specRules.map(({ message, fieldPath = '' }) => ({
          path: `spec${fieldPath}`,
          message,
        })),
}

function nodeNameOf({ spec }: KubeObject): unknown {
  return isRecord(spec) ? spec['nodeName'] : undefined
}
