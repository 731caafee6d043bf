/**
 * Operators that are restarted while pods take turns on a GPU: no pod is swapped out before its idle period
 * because of a restart. How often each was swapped out is printed.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { count } from '../faults/fault-cluster.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import type { FakeKubelet } from '../support/kubernetes/fake-kubelet.ts'
import { Stack } from '../support/kubernetes/stack.ts'

const RESTARTS = count('KUBERNETES_STORM_RESTARTS', 5)
const WAIT = { timeout: 90_000, interval: 50 }
const IDLE_MS = 3_000
/** The agent measures once a second. */
const SAMPLE_MS = 1_000
const LOOK_EVERY_MS = 20
/** Two fit at once; the smaller ones are cheaper to move. */
const PODS = [
  { name: 'small-1', vram: '18Gi' },
  { name: 'large-1', vram: '22Gi' },
  { name: 'small-2', vram: '18Gi' },
  { name: 'large-2', vram: '22Gi' },
]
const MISSING = whyNoControlPlane('kube-scheduler', 'kube-controller-manager')

/** What the process of a pod shows: when it was stopped, and when it had worked or returned before. */
class Watched {
  readonly name: string
  readonly early: string[] = []
  swapOuts = 0
  activeAt = performance.now()
  isStopped = false
  isBusy = false

  constructor(name: string) {
    this.name = name
  }

  look(state: string | null): void {
    const now = performance.now()
    const isStopped = state === 'T'
    if (isStopped && !this.isStopped) {
      this.swapOuts += 1
      const idleMs = Math.round(now - this.activeAt)
      if (this.isBusy) this.early.push(`${this.name} while it worked`)
      else if (idleMs < IDLE_MS - SAMPLE_MS) this.early.push(`${this.name} after ${idleMs} ms`)
    }
    if (this.isBusy || (this.isStopped && !isStopped)) this.activeAt = now
    this.isStopped = isStopped
  }
}

describe.skipIf(MISSING !== null || RESTARTS === 0)('Operators that are restarted', () => {
  const watched = PODS.map(({ name }) => new Watched(name))
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
    for (const pod of PODS) await stack.addPod(pod)
    watching = watch()
  })
  afterAll(async () => {
    isOver = true
    await watching
    await stack?.stop()
  })

  async function watch(): Promise<void> {
    for (; !isOver; await delay(LOOK_EVERY_MS))
      for (const each of watched) {
        const pod = stack.pod(each.name)
        each.look(pod === undefined ? null : kubelet.stateOf(pod))
      }
  }
  const swapOuts = (): number => watched.reduce((sum, each) => sum + each.swapOuts, 0)

  it(`No pod is swapped out before its idle period in ${RESTARTS} restarts`, async () => {
    await vi.waitFor(() => expect(swapOuts()).toBeGreaterThan(0), WAIT)
    for (let n = 0; n < RESTARTS; n += 1) {
      // One that is in VRAM works until the operator has been restarted.
      const busy = watched.find(({ isStopped }) => !isStopped)
      if (busy !== undefined) {
        busy.isBusy = true
        kubelet.setBusy(busy.name, true)
      }
      const before = swapOuts()
      await (await stack.leader())?.end(n % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
      await vi.waitFor(async () => {
        const placing = await Promise.all(
          stack.operators.map((each) => each.metric('headroom_operator_leading')),
        )
        expect(placing).toContain(1)
      }, WAIT)
      if (busy !== undefined) {
        kubelet.setBusy(busy.name, false)
        busy.activeAt = performance.now()
        busy.isBusy = false
      }
      await vi.waitFor(() => expect(swapOuts()).toBeGreaterThan(before), WAIT)
    }
    console.log(`swap-outs: ${watched.map((each) => `${each.name} ${each.swapOuts}`).join(', ')}`)
    expect(watched.flatMap(({ early }) => early)).toEqual([])
  }, 1_800_000)
})
