/** What the operator reports about a policy. */
import { isDeepStrictEqual } from 'node:util'
import type { Condition } from '../contract/policies.ts'
import {
  CONFLICT,
  type KubeApi,
  KubeError,
  type KubeObject,
  NOT_FOUND,
  type ResourceKind,
} from '../ports/kube-api.ts'
import { datedCondition } from './node-status.ts'

export interface PolicyFacts {
  /** Null: it applies; otherwise why not. */
  readonly fault: string | null
  /** Nodes whose percentage comes from it; undefined: not reported for its kind. */
  readonly nodes?: number
  /** ISO 8601, whole seconds. */
  readonly now: string
}

interface PolicyStatus {
  readonly conditions?: readonly Condition[]
}

/** Writes it if it has changed. */
export async function reportPolicy(
  api: KubeApi,
  kind: ResourceKind,
  policy: KubeObject,
  { fault, nodes, now }: PolicyFacts,
): Promise<void> {
  const before = (policy['status'] ?? {}) as PolicyStatus
  const { generation = 1 } = policy.metadata
  const ready = {
    type: 'Ready',
    observedGeneration: generation,
    ...(fault === null
      ? ({ status: 'True', reason: 'Applied', message: 'The policy applies.' } as const)
      : ({ status: 'False', reason: 'NotApplied', message: fault } as const)),
  }
  const status = {
    observedGeneration: generation,
    conditions: [datedCondition(ready, before.conditions ?? [], now)],
    ...(nodes === undefined ? {} : { nodes }),
  }
  if (isDeepStrictEqual(status, before)) return
  try {
    await api.replace(kind, { ...policy, status }, { subresource: 'status' })
  } catch (error) {
    // It has changed or is gone: the next report decides.
    if (!(error instanceof KubeError) || ![CONFLICT, NOT_FOUND].includes(error.code)) throw error
  }
}
