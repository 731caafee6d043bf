/** Whether the components run, and whether the RuntimeClasses exist that they and their pods name. */
import { DAEMON_SETS, DEPLOYMENTS, LEASES, RUNTIME_CLASSES } from '../../operator/ports/kube-api.ts'
import { type Check, fail, ok, warn } from '../doctor/check.ts'
import { span } from '../output/figures.ts'
import type { Stack } from './doctor-admission.ts'
import { seen } from './doctor-seen.ts'
import type { ClusterApi } from './kubectl-api.ts'

interface PodTemplate {
  readonly spec?: {
    readonly runtimeClassName?: string
    readonly containers?: readonly { readonly args?: readonly string[] }[]
  }
}

interface Workload {
  readonly spec?: { readonly replicas?: number; readonly template?: PodTemplate }
  readonly status?: {
    readonly availableReplicas?: number
    readonly desiredNumberScheduled?: number
    readonly numberAvailable?: number
  }
}

const DEPLOYED = ['admission', 'operator', 'scheduler']

export async function componentChecks(
  api: ClusterApi,
  { namespace, observes }: Stack,
  now: number,
): Promise<readonly Check[]> {
  const deployed: Check[] = []
  for (const component of DEPLOYED.filter((name) => !observes || name !== 'scheduler'))
    deployed.push(await deploymentCheck(api, namespace, component))
  return [...deployed, await leaderCheck(api, namespace, now), await autoscalerCheck(api)]
}

async function deploymentCheck(api: ClusterApi, namespace: string, component: string): Promise<Check> {
  const name = `headroom-${component}`
  const found = await seen(() => api.get(DEPLOYMENTS, { namespace, name }))
  if (found.kind === 'denied') return found.check(component)
  if (found.kind === 'absent')
    return fail(component, `there is no Deployment ${name} in ${namespace}`, 'install the chart')
  const { spec = {}, status = {} } = found.value as Workload
  const [available, wanted] = [status.availableReplicas ?? 0, spec.replicas ?? 1]
  const detail = `${available} of ${wanted} replicas are available`
  if (available >= wanted && wanted > 0) return ok(component, detail)
  const todo = `run kubectl describe -n ${namespace} deployment/${name}`
  return available === 0 ? fail(component, detail, todo) : warn(component, detail, todo)
}

const LEASE_OVER_MS = 60_000

/** Clocks may differ by some seconds. */
async function leaderCheck(api: ClusterApi, namespace: string, now: number): Promise<Check> {
  const name = 'headroom-operator'
  const found = await seen(() => api.get(LEASES, { namespace, name }))
  if (found.kind === 'denied') return found.check('leader')
  const todo = `no pods are placed; run kubectl logs -n ${namespace} deployment/${name}`
  if (found.kind === 'absent') return fail('leader', `there is no Lease ${name} in ${namespace}`, todo)
  const { holderIdentity = '', renewTime = '' } = (found.value['spec'] ?? {}) as Readonly<
    Record<string, string>
  >
  const silentMs = now - Date.parse(renewTime)
  if (holderIdentity === '') return fail('leader', 'no operator holds the Lease', todo)
  return silentMs < LEASE_OVER_MS
    ? ok('leader', `${holderIdentity} places pods`)
    : fail('leader', `${holderIdentity} has not renewed its Lease for ${span(silentMs)}`, todo)
}

const AUTOSCALERS = 'app.kubernetes.io/name in (cluster-autoscaler,aws-cluster-autoscaler,karpenter)'

async function autoscalerCheck(api: ClusterApi): Promise<Check> {
  const found = await seen(() => api.list(DEPLOYMENTS, { labelSelector: AUTOSCALERS }))
  if (found.kind === 'denied') return found.check('autoscaler')
  const names =
    found.kind === 'found' ? found.value.items.map(({ metadata }) => metadata.name ?? '').join(', ') : ''
  return names === ''
    ? ok('autoscaler', 'none was found')
    : warn('autoscaler', `${names} ignores pods with a scheduling gate`, 'scale the GPU node groups manually')
}

// ---- RuntimeClasses ----

export async function runtimeClassChecks(api: ClusterApi, namespace: string): Promise<readonly Check[]> {
  const agents = await seen(() => api.get(DAEMON_SETS, { namespace, name: 'headroom-agent' }))
  const admission = await seen(() => api.get(DEPLOYMENTS, { namespace, name: 'headroom-admission' }))
  const ofAgents = agents.kind === 'found' ? templateOf(agents.value as Workload).runtimeClassName : undefined
  const ofPods = admission.kind === 'found' ? runtimeClassArg(admission.value as Workload) : undefined
  const checks: Check[] = []
  if (ofAgents !== undefined)
    checks.push(await runtimeClassCheck(api, ofAgents, 'agents', 'agent.runtimeClassName'))
  if (ofPods !== undefined)
    checks.push(await runtimeClassCheck(api, ofPods, 'GPU pods', 'admission.runtimeClassName'))
  return checks
}

async function runtimeClassCheck(api: ClusterApi, name: string, who: string, value: string): Promise<Check> {
  const found = await seen(() => api.get(RUNTIME_CLASSES, { name }))
  if (found.kind === 'denied') return found.check('runtime class')
  return found.kind === 'found'
    ? ok('runtime class', `${name}, used by ${who}, exists`)
    : fail(
        'runtime class',
        `${name}, used by ${who}, does not exist: these pods are rejected`,
        `install it with the GPU runtime, or clear the Helm value ${value}`,
      )
}

function templateOf({ spec }: Workload): NonNullable<PodTemplate['spec']> {
  return spec?.template?.spec ?? {}
}

function runtimeClassArg(workload: Workload): string | undefined {
  const option = '--runtime-class='
  const args = templateOf(workload).containers?.flatMap((container) => container.args ?? []) ?? []
  return args.find((each) => each.startsWith(option))?.slice(option.length)
}
