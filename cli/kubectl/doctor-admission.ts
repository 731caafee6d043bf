/** Whether admission sees pods: tried with a pod that the API server does not keep. */
import { ADMISSION_POLICY } from '../../operator/admission/admission-policies.ts'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import {
  POD_ANNOTATIONS,
  RUNTIME_LABEL,
  RUNTIME_VALUE,
  SCHEDULER_NAME,
  SCHEDULING_GATE,
} from '../../operator/contract/names.ts'
import {
  DEPLOYMENTS,
  KubeError,
  type KubeObject,
  MUTATING_WEBHOOKS,
  PODS,
  VALIDATING_WEBHOOKS,
} from '../../operator/ports/kube-api.ts'
import { errorText } from '../../protocol/error-text.ts'
import { type Check, fail, ok, warn } from '../doctor/check.ts'
import { seen } from './doctor-seen.ts'
import type { ClusterApi } from './kubectl-api.ts'

interface WebhookConfiguration {
  readonly webhooks?: readonly {
    readonly clientConfig?: {
      readonly caBundle?: string
      readonly service?: { readonly namespace?: string }
    }
  }[]
}

export interface Stack {
  /** Namespace in the webhook configurations; otherwise the namespace of the documentation. */
  readonly namespace: string
  /** Admission does not change pods. */
  readonly observes: boolean
}

export async function stackOf(api: ClusterApi): Promise<Stack> {
  const found = await seen(() => api.get(MUTATING_WEBHOOKS, { name: ADMISSION_POLICY }))
  const { webhooks = [] } = found.kind === 'found' ? (found.value as unknown as WebhookConfiguration) : {}
  const namespace = webhooks[0]?.clientConfig?.service?.namespace ?? 'headroom'
  const operator = await seen(() => api.get(DEPLOYMENTS, { namespace, name: 'headroom-operator' }))
  const observes = operator.kind === 'found' && JSON.stringify(operator.value).includes('"--observe"')
  return { namespace, observes }
}

export async function admissionChecks(
  api: ClusterApi,
  stack: Stack,
  namespace?: string,
): Promise<readonly Check[]> {
  const checks: Check[] = []
  for (const kind of [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS]) {
    const name = kind === MUTATING_WEBHOOKS ? 'webhook: change pods' : 'webhook: check pods'
    const found = await seen(() => api.get(kind, { name: ADMISSION_POLICY }))
    if (found.kind === 'denied') checks.push(found.check(name))
    else if (found.kind === 'absent')
      checks.push(
        fail(
          name,
          `there is no ${kind.kind} ${ADMISSION_POLICY}`,
          'install the chart: without the webhooks, Headroom does not manage any pods',
        ),
      )
    else
      checks.push(configurationCheck(name, found.value as unknown as WebhookConfiguration, stack.namespace))
  }
  return [...checks, await trialCheck(api, stack, namespace)]
}

function configurationCheck(name: string, { webhooks = [] }: WebhookConfiguration, stack: string): Check {
  const without = webhooks.filter(({ clientConfig }) => (clientConfig?.caBundle ?? '') === '')
  return without.length === 0
    ? ok(name, `${webhooks.length} webhooks have a certificate`)
    : fail(name, 'the webhook has no certificate', logsOf(stack))
}

const TRIAL = 'headroom-doctor-trial'

async function trialCheck(
  api: ClusterApi,
  { namespace: stack, observes }: Stack,
  namespace?: string,
): Promise<Check> {
  const name = 'admission'
  const trial: KubeObject = {
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: {
      ...{ name: TRIAL, ...(namespace === undefined ? {} : { namespace }) },
      labels: { [RUNTIME_LABEL]: RUNTIME_VALUE },
      annotations: { [POD_ANNOTATIONS.podVram]: '1Mi' },
    },
    spec: { containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }] },
  }
  try {
    const { spec } = (await api.create(PODS, trial, { isDryRun: true })) as unknown as Pod
    if (observes) return ok(name, 'observe mode: a test pod was not changed')
    const isGated = (spec.schedulingGates ?? []).some((gate) => gate.name === SCHEDULING_GATE)
    return isGated && spec.schedulerName === SCHEDULER_NAME
      ? ok(name, 'the webhook set the gate and the scheduler of a test pod')
      : fail(name, 'a test pod was not changed', logsOf(stack))
  } catch (error) {
    if (!(error instanceof KubeError)) throw error
    const text = errorText(error)
    if (/failed calling webhook/.test(text))
      return fail(
        name,
        text,
        `${logsOf(stack)}; also check the NetworkPolicies between the API server and the webhook`,
      )
    if (error.code === 403 && !/denied|admission/.test(text))
      return warn(name, 'not tested: you may not create pods in this namespace', 'use another namespace (-n)')
    return warn(name, `a test pod was rejected: ${text}`, null)
  }
}

function logsOf(stack: string): string {
  return `run kubectl logs -n ${stack} deployment/headroom-admission`
}
