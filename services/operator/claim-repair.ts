/** Keeps the claims in GPUNodes as the pods are. */
import { type Clock, timePasses } from '../../controller/ports/clock.ts'
import { NodeBook } from '../../operator/placing/node-book.ts'
import { allObjects } from '../../operator/ports/all-objects.ts'
import { type KubeApi, KubeError, ownResource } from '../../operator/ports/kube-api.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { withAddedClaim, withoutClaim } from '../../operator/placing/claims.ts'
import { keyOf } from '../../operator/placing/binding.ts'
import type { Bindings } from '../../operator/placing/pod-bindings.ts'
import { claimOfPod, podText, stageOf } from '../../operator/placing/pod-task.ts'
import { type Claim, GPU_NODE, type GPUNodeStatus } from '../../operator/contract/policies.ts'
import type { ClusterObjects } from './cluster-objects.ts'
import type { ObjectFaults } from './object-faults.ts'

/** Copies are some milliseconds behind, or their watch has broken. */
const SEEN_WITHIN_MS: DurationMs = 3_000
const SEEN_LOOK_MS: DurationMs = 50

export interface StaleClaimParts {
  readonly objects: ClusterObjects
  readonly bindings: Bindings
  /** Of the node. */
  readonly book: NodeBook
  /** Whether this operator has bound the pod to the node; its copy of the pod may be behind. */
  readonly isBoundHere: (podUid: string, nodeName: string) => boolean
  /** A pod is bound, although its copy is not. */
  readonly onBehind: (podUid: string) => void
}

export interface LostClaimParts {
  readonly objects: ClusterObjects
  readonly book: (nodeName: string) => NodeBook
  readonly faults: ObjectFaults
}

/** The GPUNodes as they are stored: a copy may lack the last claims of the leader before. */
export async function storedBooks(api: KubeApi): Promise<readonly NodeBook[]> {
  const stored = await allObjects(api, ownResource(GPU_NODE))
  return stored.map((object) => new NodeBook(api, object.metadata.name ?? '', object))
}

/**
 * Resolves once the copies show where these pods are bound. Until then their VRAM would count as free.
 * Rejects if they stay behind.
 */
export async function bindingsSeen(
  uids: readonly string[],
  { pod }: Pick<ClusterObjects, 'pod'>,
  clock: Clock,
): Promise<void> {
  const unseen = (): boolean => uids.some((uid) => pod(uid)?.spec.nodeName === undefined)
  for (let waited = 0; unseen(); waited += SEEN_LOOK_MS) {
    if (waited >= SEEN_WITHIN_MS) throw new Error('the copy of the pods is behind')
    await timePasses(clock, SEEN_LOOK_MS)
  }
}

/** Every pod that is bound to one of these nodes has its claim, even if its GPUNode was deleted. */
export async function restoreClaims(
  { objects, book, faults }: LostClaimParts,
  isHost: (nodeName: string) => boolean,
): Promise<void> {
  for (const pod of objects.pods()) {
    const claim = stageOf(pod) === 'bound' ? claimOfPod(pod) : null
    const { nodeName = '' } = pod.spec
    if (claim === null || !isHost(nodeName)) continue
    const { claims = [] } = book(nodeName).status
    if (claims.some(({ podUid }) => podUid === claim.podUid)) continue
    await faults.tried(`the claim of pod ${podText(pod)}`, () =>
      book(nodeName).change((status) => withAddedClaim(status, claim)),
    )
  }
}

/**
 * Gives up claims of pods that ended, that run on another node, or that an earlier operator did not bind.
 * Rejects with the first refusal, once all have been tried.
 */
export async function dropStaleClaims(parts: StaleClaimParts): Promise<void> {
  const { book, objects } = parts
  await rereadIfBehind(book, objects)
  const faults: KubeError[] = []
  for (const claim of book.status.claims ?? [])
    await dropIfStale(parts, claim).catch((fault: unknown) => {
      if (!(fault instanceof KubeError)) throw fault
      faults.push(fault)
    })
  const [first] = faults
  if (first !== undefined) throw first
}

async function dropIfStale(
  { objects, bindings, book, isBoundHere, onBehind }: StaleClaimParts,
  claim: Claim,
): Promise<void> {
  const { nodeName } = book
  const pod = objects.pod(claim.podUid)
  const { nodeName: actual = nodeName } = pod?.spec ?? {}
  if (pod !== undefined && (stageOf(pod) === 'over' || actual !== nodeName))
    await book.change((status) => withoutClaim(status, claim.podUid))
  else if (
    pod?.spec.nodeName === undefined &&
    !bindings.isOnItsWay(claim.podUid, nodeName) &&
    !isBoundHere(claim.podUid, nodeName)
  ) {
    const released = await bindings.release(claim.podUid, keyOf(claim), book)
    // An earlier operator has bound it meanwhile.
    if (released?.spec.nodeName === undefined) return
    onBehind(claim.podUid)
    if (released.spec.nodeName === nodeName) await book.change((status) => withAddedClaim(status, claim))
  }
}

/** An earlier leader may have stored a claim after this one has read the status. */
async function rereadIfBehind(book: NodeBook, objects: ClusterObjects): Promise<void> {
  const { claims: stored = [] } = (objects.gpuNode(book.nodeName)?.['status'] ?? {}) as GPUNodeStatus
  const known = new Set((book.status.claims ?? []).map(({ podUid }) => podUid))
  if (stored.some(({ podUid }) => !known.has(podUid))) await book.reread()
}
