/**
 * `kubectl headroom release POD`: the pod runs without Headroom.
 * - Bound: it returns to VRAM and stays there, by an annotation that the operator reads.
 * - Waiting, without a controller: a plain pod takes its place, because nothing can change the scheduler of a
 *   pod. With a controller: its template decides; once the stack is gone, the pod is deleted.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { ADMISSION_POLICY } from '../../operator/admission/admission-policies.ts'
import { plainPod } from '../../operator/admission/plain-pod.ts'
import type { OwnerReference, Pod } from '../../operator/contract/kubernetes.ts'
import { ADMITTED_CONDITION, POD_ANNOTATIONS, RUNTIME_LABEL } from '../../operator/contract/names.ts'
import { stageOf } from '../../operator/placing/pod-task.ts'
import {
  CONFLICT,
  KubeError,
  type KubeObject,
  MUTATING_WEBHOOKS,
  NOT_FOUND,
  type ObjectKey,
  PODS,
} from '../../operator/ports/kube-api.ts'
import type { DurationMs } from '../../protocol/units.ts'
import {
  CommandFailure,
  EXIT_CONFLICT,
  EXIT_NOT_FOUND,
  EXIT_OK,
  EXIT_TIMEOUT,
} from '../../services/exit-codes.ts'
import type { Out } from '../output/table.ts'
import { podNamed } from './explain.ts'
import { type ClusterApi, type KubectlOptions, withCluster } from './kubectl-api.ts'

export interface ReleaseOptions extends KubectlOptions {
  readonly undo?: boolean
  readonly replace?: boolean
  /** Milliseconds. */
  readonly wait: DurationMs
}

export function release(name: string, { undo, replace, wait, ...cluster }: ReleaseOptions): Promise<number> {
  const how = { isUndone: undo === true, mayReplace: replace === true, waitMs: wait, out: process.stdout }
  return withCluster(cluster, (api) => releasePod(api, name, how))
}

export interface ReleaseHow {
  /** Else that of kubectl. */
  readonly namespace?: string
  /** The pod may be swapped out again. */
  readonly isUndone: boolean
  /** A waiting pod without a controller is deleted and created again. */
  readonly mayReplace: boolean
  readonly waitMs: DurationMs
  readonly out: Out
  readonly lookEveryMs?: DurationMs
}

const LOOK_EVERY_MS = 1_000

export async function releasePod(api: ClusterApi, name: string, how: ReleaseHow): Promise<number> {
  const pod = await podNamed(api, name, how.namespace)
  const stage = stageOf(pod)
  if (how.isUndone) return undone(api, pod, how)
  if (pod.metadata.deletionTimestamp !== undefined || stage === 'over')
    throw new CommandFailure(`Pod ${name} has ended or is being deleted.`, EXIT_CONFLICT)
  if (stage === 'foreign')
    throw new CommandFailure(`Pod ${name} already runs without Headroom.`, EXIT_CONFLICT)
  return stage === 'bound' ? keptInVram(api, pod, how) : withoutHeadroom(api, pod, how)
}

// ---- bound pods ----

async function undone(api: ClusterApi, pod: Pod, { out }: ReleaseHow): Promise<number> {
  await annotate(api, pod, null)
  out.write(`Pod ${nameOf(pod)} may be swapped out again.\n`)
  return EXIT_OK
}

async function keptInVram(api: ClusterApi, pod: Pod, how: ReleaseHow): Promise<number> {
  const { out, waitMs, lookEveryMs = LOOK_EVERY_MS } = how
  await annotate(api, pod, 'true')
  let found: Pod | null = pod
  for (let waited = 0; isOut(found) && waited < waitMs; waited += lookEveryMs) {
    await pause(lookEveryMs)
    found = await sameOrNull(api, pod)
    if (found === null) throw new CommandFailure(`Pod ${nameOf(pod)} no longer exists.`, EXIT_NOT_FOUND)
  }
  if (!isOut(found)) {
    out.write(`Pod ${nameOf(pod)} is in VRAM and stays there. Use --undo to revert this.\n`)
    return EXIT_OK
  }
  throw new CommandFailure(
    `Pod ${nameOf(pod)} is still swapped out. It will be swapped in when its GPU has free VRAM. Run ` +
      `\`kubectl ` +
      `headroom doctor\` to check its agent.`,
    EXIT_TIMEOUT,
  )
}

function annotate(api: ClusterApi, pod: Pod, value: 'true' | null): Promise<unknown> {
  const body = { metadata: { annotations: { [POD_ANNOTATIONS.keepInVram]: value } } }
  return api.patch(PODS, keyOf(pod), { type: 'merge', body })
}

function isOut({ status }: Pod): boolean {
  return status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)?.reason === 'SwappedOut'
}

// ---- pods that wait ----

async function withoutHeadroom(api: ClusterApi, pod: Pod, how: ReleaseHow): Promise<number> {
  const owner = (pod.metadata.ownerReferences ?? []).find(({ controller }) => controller === true)
  if (owner !== undefined) return byController(api, pod, owner, how)
  if (how.mayReplace) return replaced(api, pod, how)
  throw new CommandFailure(
    `Pod ${nameOf(pod)} is pending, and the scheduler of a pod cannot be changed. Use --replace to ` +
      'delete it and recreate it as a plain pod, which the default scheduler places.',
    EXIT_CONFLICT,
  )
}

async function byController(
  api: ClusterApi,
  pod: Pod,
  { kind, name }: OwnerReference,
  { out }: ReleaseHow,
): Promise<number> {
  const hasStack = await exists(api.get(MUTATING_WEBHOOKS, { name: ADMISSION_POLICY }))
  if (hasStack)
    throw new CommandFailure(
      `Pod ${nameOf(pod)} was created by ${kind} ${name}, which would recreate it. Remove the label ` +
        `${RUNTIME_LABEL} from the pod template of the workload that owns the pod.`,
      EXIT_CONFLICT,
    )
  await deleteExactly(api, pod)
  out.write(`Pod ${nameOf(pod)} was deleted. ${kind} ${name} replaces it with a plain pod.\n`)
  return EXIT_OK
}

/** The plain pod is checked before anything is deleted. */
async function replaced(api: ClusterApi, pod: Pod, how: ReleaseHow): Promise<number> {
  const plain = plainPod(pod) as unknown as KubeObject
  const trial = { ...plain, metadata: { ...plain.metadata, name: `${nameOf(pod).slice(0, 240)}-plain` } }
  await api.create(PODS, trial, { isDryRun: true })
  await deleteExactly(api, pod)
  const { lookEveryMs = LOOK_EVERY_MS, waitMs, out } = how
  for (let waited = 0; (await sameOrNull(api, pod)) !== null; waited += lookEveryMs) {
    if (waited >= waitMs) throw notCreated(plain, 'the old pod is still being deleted')
    await pause(lookEveryMs)
  }
  await api.create(PODS, plain).catch((error: unknown) => {
    throw notCreated(plain, error instanceof Error ? error.message : String(error))
  })
  out.write(`Pod ${nameOf(pod)} is now a plain pod, and the default scheduler places it.\n`)
  return EXIT_OK
}

/** Nothing is lost: the message has the manifest. */
function notCreated(plain: KubeObject, why: string): CommandFailure {
  return new CommandFailure(
    `The plain pod was not created: ${why}. To create it, pass this object to \`kubectl create -f -\`: ` +
      `${JSON.stringify(plain)}`,
  )
}

const DELETE_TRIES = 5

/** One that was bound meanwhile stays; the operator may write its condition at any time. */
async function deleteExactly(api: ClusterApi, pod: Pod): Promise<void> {
  for (let left = DELETE_TRIES; ; left -= 1) {
    const found = await sameOrNull(api, pod)
    if (found === null) return
    if (stageOf(found) !== 'waiting' && stageOf(found) !== 'held')
      throw new CommandFailure(`Pod ${nameOf(pod)} is no longer waiting and was not deleted.`, EXIT_CONFLICT)
    const { uid = '', resourceVersion = '' } = found.metadata
    try {
      return await api.delete(PODS, keyOf(pod), { uid, resourceVersion })
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== CONFLICT || left <= 1) throw error
    }
  }
}

async function sameOrNull(api: ClusterApi, pod: Pod): Promise<Pod | null> {
  try {
    const found = (await api.get(PODS, keyOf(pod))) as unknown as Pod
    return found.metadata.uid === pod.metadata.uid ? found : null
  } catch (error) {
    if (error instanceof KubeError && error.code === NOT_FOUND) return null
    throw error
  }
}

async function exists(got: Promise<KubeObject>): Promise<boolean> {
  try {
    await got
    return true
  } catch (error) {
    if (error instanceof KubeError && error.code === NOT_FOUND) return false
    throw error
  }
}

function keyOf({ metadata: { namespace = '', name = '' } }: Pod): ObjectKey {
  return { namespace, name }
}

function nameOf({ metadata: { name = '' } }: Pod): string {
  return name
}
