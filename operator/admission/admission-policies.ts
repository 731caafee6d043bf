/**
 * Policies that the API server checks by itself, also while no process of Headroom runs:
 * - `headroom-admission`: a pod with our label that our admission did not change is refused, and what
 *   admission has read or written does not change.
 * - `headroom-operator`: the operator changes pods with our label and its own pods alone; RBAC cannot say so.
 * - `headroom-node-label`: an invalid percentage on a node gets a warning and is not refused.
 */
import {
  NODE_LABELS,
  POD_ANNOTATIONS,
  RUNTIME_LABEL,
  RUNTIME_VALUE,
  SCHEDULER_NAME,
  SCHEDULING_GATE,
} from '../contract/names.ts'
import { MAX_PERCENT, MIN_PERCENT, PERCENT_PATTERN } from '../contract/percent.ts'
import { FIXED_ANNOTATIONS } from '../contract/pod-request.ts'

export const ADMISSION_POLICY = 'headroom-admission'
const OPERATOR_POLICY = 'headroom-operator'
const NODE_LABEL_POLICY = 'headroom-node-label'

interface CelCheck {
  readonly expression: string
  readonly message: string
}

const MIRROR = 'kubernetes.io/config.mirror'
const OURS = `${RUNTIME_LABEL}: ${RUNTIME_VALUE}`
const NOT_SEEN = `a pod with the label ${OURS} must be admitted by Headroom`

/** @param namespace of the stack */
export function admissionPolicies(namespace: string): readonly object[] {
  return [
    ...policy(ADMISSION_POLICY, {
      matchConstraints: {
        objectSelector: { matchLabels: { [RUNTIME_LABEL]: RUNTIME_VALUE } },
        resourceRules: [rule(['CREATE', 'UPDATE'], ['pods'])],
      },
      // Pods that the kubelet reads from files.
      matchConditions: [
        {
          name: 'no-mirror',
          expression: `!has(object.metadata.annotations) || !('${MIRROR}' in object.metadata.annotations)`,
        },
      ],
      validations: [...CREATED, ...FIXED_ANNOTATIONS.map(unchanged)],
    }),
    ...policy(OPERATOR_POLICY, {
      matchConstraints: { resourceRules: [rule(['UPDATE'], ['pods', 'pods/status'])] },
      matchConditions: [
        {
          name: 'operator',
          expression: `request.userInfo.username == 'system:serviceaccount:${namespace}:headroom-operator'`,
        },
      ],
      validations: [
        {
          expression:
            `object.metadata.?labels[?'${RUNTIME_LABEL}'].orValue('') == '${RUNTIME_VALUE}' || ` +
            `(object.metadata.namespace == '${namespace}' && ` +
            "object.metadata.?labels[?'app.kubernetes.io/component'].orValue('') == 'operator')",
          message: `the operator of Headroom changes pods with the label ${OURS} only`,
        },
      ],
    }),
    ...policy(NODE_LABEL_POLICY, NODE_LABEL, 'Warn'),
  ]
}

const PERCENT_LABEL = NODE_LABELS.overcommitPercent
const labelOf = (side: string): string => `${side}.metadata.?labels[?'${PERCENT_LABEL}'].orValue('0')`
const NODE_LABEL = {
  failurePolicy: 'Ignore',
  matchConstraints: { resourceRules: [rule(['CREATE', 'UPDATE'], ['nodes'])] },
  validations: [
    {
      expression:
        `(request.operation == 'UPDATE' && ${labelOf('object')} == ${labelOf('oldObject')}) || ` +
        `${labelOf('object')}.matches('${PERCENT_PATTERN}')`,
      message:
        `the label ${PERCENT_LABEL} is ignored: it must be a whole number from ${MIN_PERCENT} to ` +
        `${MAX_PERCENT}`,
    },
  ],
}

const CREATED: readonly CelCheck[] = [
  `object.spec.?schedulerName.orValue('') == '${SCHEDULER_NAME}'`,
  `object.spec.?schedulingGates.orValue([]).exists(gate, gate.name == '${SCHEDULING_GATE}')`,
  `isQuantity(object.metadata.?annotations[?'${POD_ANNOTATIONS.podVram}'].orValue(''))`,
].map((expression) => ({ expression: `request.operation != 'CREATE' || ${expression}`, message: NOT_SEEN }))

function unchanged(name: string): CelCheck {
  const of = (side: string): string => `${side}.metadata.?annotations[?'${name}']`
  return {
    expression: `request.operation != 'UPDATE' || ${of('object')} == ${of('oldObject')}`,
    message: `the annotation ${name} must not change after the pod was created`,
  }
}

function rule(operations: readonly string[], resources: readonly string[]): object {
  return { apiGroups: [''], apiVersions: ['v1'], operations, resources }
}

function policy(name: string, spec: object, action: 'Deny' | 'Warn' = 'Deny'): readonly object[] {
  const of = (kind: string, body: object): object => ({
    ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name } },
    spec: body,
  })
  return [
    of('ValidatingAdmissionPolicy', { failurePolicy: 'Fail', ...spec }),
    of('ValidatingAdmissionPolicyBinding', { policyName: name, validationActions: [action] }),
  ]
}
