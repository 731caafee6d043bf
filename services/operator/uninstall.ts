/**
 * Before the stack is removed, so that nothing stays stopped or gated:
 * 1. The agents bring every pod into VRAM. If one cannot return in time, nothing else is done.
 * 2. Admission no longer sees new pods.
 * 3. Pods that wait and have a controller are deleted: their next copies are plain pods, which the default
 *    scheduler places. Nothing can change the scheduler of a pod, so one without a controller is only named.
 * 4. The components end while they still have their rights, and their Leases are deleted: nothing else would
 *    delete them.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import {
  AGENT_LABELS,
  RUNTIME_LABEL,
  RUNTIME_VALUE,
  SCHEDULER_NAME,
  SCHEDULING_GATE,
} from '../../operator/contract/names.ts'
import { allObjects } from '../../operator/ports/all-objects.ts'
import {
  CONFLICT,
  DAEMON_SETS,
  DEPLOYMENTS,
  INVALID,
  type KubeApi,
  KubeError,
  type KubeObject,
  LEASES,
  MUTATING_WEBHOOKS,
  NOT_FOUND,
  PODS,
  POLICY_BINDINGS,
  VALIDATING_WEBHOOKS,
} from '../../operator/ports/kube-api.ts'
import type { DurationMs } from '../../protocol/units.ts'

export interface UninstallOptions {
  readonly api: KubeApi
  readonly namespace: string
  /** Name of their DaemonSet. */
  readonly agents: string
  /** Name of the admission objects. */
  readonly configuration: string
  /** For pods that are out. */
  readonly waitMs: DurationMs
  readonly onNote: (line: string) => void
  readonly lookEveryMs?: DurationMs
}

const LOOK_EVERY_MS = 1_000
/** The API server may call a removed webhook for a moment: only then is a plain copy certain. */
const CALM_LOOKS = 5
const RELEASE = ['--release', '--stay']
/** Deployments, by the label of their pods. */
const COMPONENTS = ['operator', 'scheduler', 'admission'].map((component) => ({
  component,
  name: `headroom-${component}`,
}))
const LEASE_NAMES = ['headroom-operator', 'headroom-scheduler']
/** Their grace period, and some time to report that they have ended. */
const ENDED_WITHIN_MS = 45_000

/** Resolves with the agents that are not done; none: the stack can be removed. */
export async function uninstallStack(options: UninstallOptions): Promise<readonly string[]> {
  const left = await releaseAgents(options)
  if (left.length > 0) return left
  const { api, configuration: name, onNote } = options
  for (const kind of [POLICY_BINDINGS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS])
    if (await isDone(api.delete(kind, { name }), NOT_FOUND)) onNote(`${kind.kind} ${name} is removed.`)
  await freeWaitingPods(options)
  await endComponents(options)
  return []
}

// ---- agents ----

interface DaemonSet {
  readonly metadata: { readonly generation?: number }
  readonly spec?: {
    readonly template?: { readonly spec?: { readonly containers?: readonly { readonly args?: string[] }[] } }
  }
  readonly status?: {
    readonly observedGeneration?: number
    readonly desiredNumberScheduled?: number
    readonly updatedNumberScheduled?: number
    readonly numberAvailable?: number
  }
}

async function releaseAgents(options: UninstallOptions): Promise<readonly string[]> {
  const { api, namespace, agents, waitMs, onNote, lookEveryMs = LOOK_EVERY_MS } = options
  const key = { namespace, name: agents }
  const found = await absentIf(api.get(DAEMON_SETS, key))
  if (found === null) {
    onNote(`There is no DaemonSet ${agents}: no pod is swapped out.`)
    return []
  }
  await orderRelease(api, key, found as unknown as DaemonSet)
  onNote('The agents are swapping in every pod.')
  for (let waited = 0; waited < waitMs; waited += lookEveryMs) {
    const set = await absentIf(api.get(DAEMON_SETS, key))
    if (set === null || isReleased(set as unknown as DaemonSet)) {
      onNote('Every pod is in VRAM.')
      return []
    }
    await pause(lookEveryMs)
  }
  return agentsLeft(options)
}

/** All at once: while an agent starts again, its pods stay where they are. */
async function orderRelease(
  api: KubeApi,
  key: { readonly namespace: string; readonly name: string },
  { spec }: DaemonSet,
): Promise<void> {
  const args = spec?.template?.spec?.containers?.[0]?.args ?? []
  const added = RELEASE.filter((each) => !args.includes(each))
  if (added.length === 0) return
  const path = '/spec/template/spec/containers/0/args'
  await api.patch(DAEMON_SETS, key, {
    type: 'json',
    body: [
      { op: 'test', path, value: args },
      { op: 'replace', path, value: [...args, ...added] },
      { op: 'add', path: '/spec/updateStrategy/rollingUpdate', value: { maxUnavailable: '100%' } },
    ],
  })
}

function isReleased({ metadata: { generation = 0 }, status = {} }: DaemonSet): boolean {
  const { observedGeneration = 0, desiredNumberScheduled = 0 } = status
  const { updatedNumberScheduled = 0, numberAvailable = 0 } = status
  const isSeen = observedGeneration >= generation
  return isSeen && Math.min(updatedNumberScheduled, numberAvailable) >= desiredNumberScheduled
}

async function agentsLeft({ api, namespace, agents }: UninstallOptions): Promise<readonly string[]> {
  const labelSelector = Object.entries(AGENT_LABELS)
    .map(([name, value]) => `${name}=${value}`)
    .join()
  const pods = await podsWith(api, { namespace, labelSelector })
  const unready = pods.filter(({ status }) => {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')
    return ready?.status !== 'True'
  })
  if (unready.length === 0) return [`DaemonSet ${agents} has not started its pods again`]
  return unready.map(({ metadata: { name = '' }, spec: { nodeName = '' } }) => {
    return `node ${nodeName}: see kubectl logs --namespace ${namespace} ${name}`
  })
}

// ---- pods that wait ----

async function freeWaitingPods({
  api,
  onNote,
  lookEveryMs = LOOK_EVERY_MS,
}: UninstallOptions): Promise<void> {
  const bare = new Set<string>()
  for (let calm = 0; calm < CALM_LOOKS; calm += 1) {
    for (const pod of await podsWith(api, { labelSelector: `${RUNTIME_LABEL}=${RUNTIME_VALUE}` })) {
      const { namespace = '', name = '', ownerReferences = [] } = pod.metadata
      if (!isWaiting(pod)) continue
      if (ownerReferences.some(({ controller }) => controller === true)) {
        calm = 0
        if (await deleted(api, pod))
          onNote(`Pod ${namespace}/${name} was deleted, and its controller recreates it.`)
      } else if (!bare.has(`${namespace}/${name}`) && (await ungated(api, pod))) {
        bare.add(`${namespace}/${name}`)
        onNote(
          `Pod ${namespace}/${name} has no controller, and ${SCHEDULER_NAME} is being removed: recreate ` +
            'the pod.',
        )
      }
    }
    await pause(lookEveryMs)
  }
}

function isWaiting({ metadata, spec, status }: Pod): boolean {
  const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed'
  const isUnbound = (spec.nodeName ?? '') === '' && spec.schedulerName === SCHEDULER_NAME
  return isUnbound && !isOver && metadata.deletionTimestamp === undefined
}

/** One that was bound meanwhile has another version, and stays. */
function deleted(api: KubeApi, { metadata }: Pod): Promise<boolean> {
  const { namespace = '', name = '', uid, resourceVersion } = metadata
  const only = {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  }
  return isDone(api.delete(PODS, { namespace, name }, only), NOT_FOUND, CONFLICT)
}

async function ungated(api: KubeApi, { metadata, spec }: Pod): Promise<boolean> {
  const { namespace = '', name = '', uid } = metadata
  const place = (spec.schedulingGates ?? []).findIndex((gate) => gate.name === SCHEDULING_GATE)
  if (place === -1) return true
  const path = `/spec/schedulingGates/${place}`
  const body = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: `${path}/name`, value: SCHEDULING_GATE },
    { op: 'remove', path },
  ] as const
  return isDone(api.patch(PODS, { namespace, name }, { type: 'json', body }), NOT_FOUND, INVALID)
}

// ---- components ----

async function endComponents({
  api,
  namespace,
  onNote,
  lookEveryMs = LOOK_EVERY_MS,
}: UninstallOptions): Promise<void> {
  for (const { name } of COMPONENTS) {
    const none = { type: 'merge', body: { spec: { replicas: 0 } } } as const
    await isDone(api.patch(DEPLOYMENTS, { namespace, name }, none), NOT_FOUND)
  }
  const selection = {
    namespace,
    labelSelector: `app.kubernetes.io/name=${AGENT_LABELS['app.kubernetes.io/name']}`,
  }
  const running = async (): Promise<readonly string[]> =>
    (await podsWith(api, selection)).flatMap(({ metadata: { name = '', labels = {} } }) =>
      COMPONENTS.some(({ component }) => component === labels['app.kubernetes.io/component']) ? [name] : [],
    )
  let left = await running()
  for (let waited = 0; left.length > 0 && waited < ENDED_WITHIN_MS; waited += lookEveryMs) {
    await pause(lookEveryMs)
    left = await running()
  }
  onNote(left.length === 0 ? 'The components have ended.' : `Some pods have not ended: ${left.join(', ')}.`)
  for (const name of LEASE_NAMES) await isDone(api.delete(LEASES, { namespace, name }), NOT_FOUND)
}

async function podsWith(
  api: KubeApi,
  selection: { readonly namespace?: string; readonly labelSelector: string },
): Promise<readonly Pod[]> {
  return (await allObjects(api, PODS, selection)) as unknown as readonly Pod[]
}

async function absentIf(got: Promise<KubeObject>): Promise<KubeObject | null> {
  try {
    return await got
  } catch (error) {
    if (error instanceof KubeError && error.code === NOT_FOUND) return null
    throw error
  }
}

/** False: refused with one of these codes. */
async function isDone(done: Promise<unknown>, ...codes: readonly number[]): Promise<boolean> {
  try {
    await done
    return true
  } catch (error) {
    if (error instanceof KubeError && codes.includes(error.code)) return false
    throw error
  }
}
