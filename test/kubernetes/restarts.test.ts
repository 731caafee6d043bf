/**
 * Operators that are restarted while pods share a GPU: no pod is swapped out before its idle period because
 * of a restart, and the fairness bound holds over all of them.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { PODS } from '../../operator/ports/kube-api.ts'
import { FairnessTracker } from '../../simulator/check/fairness-tracker.ts'
import { count } from '../faults/fault-cluster.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import type { FakeKubelet } from '../support/kubernetes/fake-kubelet.ts'
import { Stack } from '../support/kubernetes/stack.ts'

const RESTARTS = count('KUBERNETES_STORM_RESTARTS', 5)
const WAIT = { timeout: 90_000, interval: 50 }
const IDLE_MS = 3_000
/** The agent measures once a second. */
const SAMPLE_MS = 1_000
/** An agent that is late has measured it too. A planned handover takes less than one sample. */
const SURELY_MEASURED_MS = 3 * SAMPLE_MS
const LOOK_EVERY_MS = 20
/** Longer than the idle period, a sample and a report take: the operator counts it as eligible. */
const SURELY_IDLE_MS = 3 * IDLE_MS
/** All fit at once. Any of the first three makes room for a guest, and the smallest is cheapest to move. */
const RESIDENTS = [
  { name: 'small', vram: '10Gi' },
  { name: 'middle', vram: '12Gi' },
  { name: 'large', vram: '14Gi' },
  { name: 'worker', vram: '8Gi' },
]
const GUEST = '12Gi'
const MISSING = whyNoControlPlane('kube-scheduler', 'kube-controller-manager')

/** What the process of a pod shows: when it was stopped, and when it had worked or returned before. */
class Watched {
  readonly name: string
  readonly early: string[] = []
  swapOuts = 0
  activeAt = Infinity
  isStopped = false
  isBusy = false

  constructor(name: string) {
    this.name = name
  }

  get isSurelyIdle(): boolean {
    return !this.isStopped && !this.isBusy && performance.now() - this.activeAt > SURELY_IDLE_MS
  }

  /** Returns true if it has just been stopped. */
  look(state: string | null): boolean {
    const now = performance.now()
    if (state !== null && this.activeAt === Infinity) this.activeAt = now
    const isStopped = state === 'T'
    const hasLeft = isStopped && !this.isStopped
    if (hasLeft) {
      this.swapOuts += 1
      const idleMs = Math.round(now - this.activeAt)
      if (this.isBusy) this.early.push(`${this.name} while it worked`)
      else if (idleMs < IDLE_MS - SAMPLE_MS) this.early.push(`${this.name} after ${idleMs} ms`)
    }
    if (this.isBusy || (this.isStopped && !isStopped)) this.activeAt = now
    this.isStopped = isStopped
    return hasLeft
  }
}

describe.skipIf(MISSING !== null || RESTARTS === 0)('Operators that are restarted', () => {
  const watched = RESIDENTS.map(({ name }) => new Watched(name))
  const worker = watched.at(-1)!
  const tracker = new FairnessTracker()
  const breaches: unknown[] = []
  let stack: Stack
  let kubelet: FakeKubelet
  let isOver = false
  let watching: Promise<void>
  beforeAll(async () => {
    stack = await Stack.start({
      nodes: [{ name: 'one', gpusMib: [49_152] }],
      operatorOptions: ['--lease', '2s', '--probe', '2s'],
      policy: {
        ...{ defaultVramOvercommitPercent: 100, safetyReserveMib: 0 },
        idleSwapOutSeconds: IDLE_MS / 1000,
      },
    })
    kubelet = stack.kubelets.get('one')!
    for (const pod of RESIDENTS) await stack.addPod(pod)
    watching = watch()
  })
  afterAll(async () => {
    isOver = true
    await watching
    await stack?.stop()
  })

  async function watch(): Promise<void> {
    for (; !isOver; await delay(LOOK_EVERY_MS)) {
      const available = new Set(watched.filter((each) => each.isSurelyIdle).map(({ name }) => name))
      for (const each of watched) {
        const pod = stack.pod(each.name)
        if (!each.look(pod === undefined ? null : kubelet.stateOf(pod))) continue
        const breach = tracker.decide({ victims: [each.name], available: available.add(each.name) })
        if (breach !== null) breaches.push(breach)
      }
    }
  }
  const swapOuts = (): number => watched.reduce((sum, each) => sum + each.swapOuts, 0)

  async function restarted(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await (await stack.leader())?.end(signal)
    await vi.waitFor(async () => {
      const leading = stack.operators.map((each) => each.metric('headroom_operator_leading'))
      expect(await Promise.all(leading)).toContain(1)
    }, WAIT)
  }

  it(`No pod leaves before its idle period or its turn in ${RESTARTS} restarts`, async () => {
    for (let n = 0; n < RESTARTS; n += 1) {
      const others = watched.filter((each) => each !== worker)
      await vi.waitFor(() => expect(others.every((each) => each.isSurelyIdle)).toBe(true), WAIT)
      worker.isBusy = true
      kubelet.setBusy(worker.name, true)
      await Promise.all([restarted(n % 2 === 0 ? 'SIGKILL' : 'SIGTERM'), delay(SURELY_MEASURED_MS)])
      kubelet.setBusy(worker.name, false)
      worker.activeAt = performance.now()
      worker.isBusy = false
      const before = swapOuts()
      const guest = `guest-${n}`
      kubelet.setBusy(guest, true)
      await stack.addPod({ name: guest, vram: GUEST })
      await vi.waitFor(() => expect(swapOuts()).toBeGreaterThan(before), WAIT)
      await vi.waitFor(() => expect(stack.pod(guest)?.status?.phase).toBe('Running'), WAIT)
      await stack.api.delete(PODS, { namespace: 'default', name: guest })
    }
    expect(watched.flatMap(({ early }) => early)).toEqual([])
    expect(breaches).toEqual([])
  }, 1_800_000)
})
