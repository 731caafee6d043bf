/** The agent of a node with real processes, under an operator over an API server in memory. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { releasePod } from '../../../cli/kubectl/release.ts'
import { ProcessAccelerator } from '../../../gpu-server/devices/process-accelerator.ts'
import { PodAgent } from '../../../gpu-server/pods/pod-agent.ts'
import { PodCgroups } from '../../../gpu-server/pods/pod-cgroups.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { ADMITTED_CONDITION, NODE_GPUS, NODE_LABELS } from '../../../operator/contract/names.ts'
import { CLUSTER_GPU_POLICY } from '../../../operator/contract/policies.ts'
import { EVENTS, NODES, ownResource, PODS } from '../../../operator/ports/kube-api.ts'
import { FakeKubelet } from '../../support/kubernetes/fake-kubelet.ts'
import { aClusterPolicy } from '../../support/kubernetes/objects.ts'
import { OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { WAIT } from '../../support/wait.ts'

const GIB = 1024
const HOUR_MS = 3_600_000
const FINALIZER = 'test.example/kubelet'

let world: OperatorWorld
let kubelet: FakeKubelet
let folder: string
let agent: RunningTestAgent
/** Added to the clock of the agent. */
let skippedMs: number
beforeEach(async () => {
  skippedMs = 0
  world = new OperatorWorld()
  folder = mkdtempSync(join(tmpdir(), 'headroom-agent-'))
  kubelet = new FakeKubelet({
    ...{ api: world.api, node: 'a' },
    remove: async ({ metadata: { namespace = '', name = '' } }) => {
      const body = { metadata: { finalizers: null } }
      await world.api.patch(PODS, { namespace, name }, { type: 'merge', body })
    },
  })
  // The agent says which GPUs there are.
  await world.addNode('a')
  const policy = aClusterPolicy(100)
  const spec = { ...policy.spec, idleSwapOutSeconds: 1, safetyReserveMib: 0 }
  await world.api.create(ownResource(CLUSTER_GPU_POLICY), { ...policy, spec })
  agent = await RunningTestAgent.start()
})
afterEach(async () => {
  await agent.stop()
  await world.stop()
  await kubelet.stop()
  rmSync(folder, { recursive: true })
})

/** As `headroom operator agent`, without the connection. */
class RunningTestAgent {
  readonly agent: PodAgent
  #isStopped = false
  readonly #loop: Promise<unknown>

  private constructor(opened: PodAgent) {
    this.agent = opened
    this.#loop = Promise.all([this.#report(), this.#sample()])
  }

  static async start(): Promise<RunningTestAgent> {
    const now = (): number => Math.floor(performance.now()) + skippedMs
    const gpus = [{ model: 'X', physicalMib: 24 * GIB, swapMs: () => 0 }]
    const wait = (ms: number) => delay(ms)
    const opened = await PodAgent.open({
      ...{ node: 'a', stateFolder: folder, hostSwapMib: 64 * GIB, idleAfterMs: 300, now, wait },
      accelerator: new ProcessAccelerator({ gpus, now, wait }),
      cgroups: new PodCgroups(kubelet.cgroups),
      whyNot: () => null,
      onNote: (line) => world.notes.push(line),
      ...{ watch: null, onRequest: () => {} },
    })
    return new RunningTestAgent(opened)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#loop
    await this.agent.close()
  }

  async #report(): Promise<void> {
    while (!this.#isStopped) {
      const operator = world.operators.find((each) => each.isLeading)
      const report = { ...this.agent.report(), wait_ms: 50 }
      const answer = (await operator?.agentReported(report)) ?? null
      if (answer !== null) this.agent.obey(answer)
      else await Promise.all(world.operators.map((each) => each.agentReported(report)))
      await delay(10)
    }
  }

  async #sample(): Promise<void> {
    while (!this.#isStopped) {
      await this.agent.sample()
      await delay(100)
    }
  }
}

const addPod = (name: string, vram: string): Promise<Pod> =>
  world.addPod(name, vram, (pod) => ({
    ...pod,
    metadata: { ...pod.metadata, finalizers: [FINALIZER] },
  }))
const conditionsOf = ({ status }: Pod) => JSON.stringify(status?.conditions)
async function runs(name: string): Promise<Pod> {
  return vi.waitFor(async () => {
    const pod = await world.pod(name)
    const state = kubelet.stateOf(pod)
    if (state === null || state === 'T')
      throw new Error(`${name} ${state}: ${conditionsOf(pod)} ${world.notes.join('\n')}`)
    return pod
  }, WAIT)
}
const isStopped = (name: string): Promise<void> =>
  vi.waitFor(async () => {
    const state = kubelet.stateOf(await world.pod(name))
    if (state !== 'T') throw new Error(`${name} is ${state}: ${world.notes.join('\n')}`)
  }, WAIT)

const stateText = (): string =>
  [...(world.operators.at(-1)?.placement?.controller.views.openTasks() ?? [])]
    .map(({ spec, state, placement }) =>
      [spec.name, state, placement?.residency, JSON.stringify(placement?.stopping)].join(' '),
    )
    .concat(world.notes)
    .join('\n')

async function bothOnOneGpu(): Promise<void> {
  kubelet.setBusy('first', true)
  kubelet.setBusy('second', true)
  world.start()
  await addPod('first', '20Gi')
  await runs('first')
  await addPod('second', '20Gi')
  kubelet.setBusy('first', false)
  await isStopped('first')
  await runs('second')
  await vi.waitFor(async () => {
    const { items } = await world.api.list(EVENTS)
    expect(items.map(({ reason }) => reason)).toContain('SwappedOut')
  }, WAIT)
  expect((await world.status('a')).gpus).toMatchObject([{ uuid: 'a-GPU-0', physicalMib: 24 * GIB }])
}

it('Two pods that each want the whole GPU share it: an idle one makes room, and returns', async () => {
  await bothOnOneGpu()
  await vi.waitFor(
    async () =>
      expect(await world.status('a')).toMatchObject({ committedMib: 40 * GIB, swappedOutMib: 20 * GIB }),
    WAIT,
  )
  kubelet.setBusy('second', false)
  await isStopped('second')
  await runs('first')
})

it('A released pod returns, and stays in VRAM although it is idle, until that is undone', async () => {
  await bothOnOneGpu()
  const released = async (isUndone: boolean): Promise<string> => {
    const out = { text: '', write: (text: string) => (out.text += text) }
    const how = { namespace: 'default', isUndone, mayReplace: false, waitMs: 20_000, lookEveryMs: 100, out }
    expect(await releasePod(world.api, 'first', how)).toBe(0)
    return out.text
  }
  kubelet.setBusy('second', false)
  expect(await released(false)).toContain('is in VRAM and stays there')
  await runs('first')
  kubelet.setBusy('second', true)
  // Longer than an idle pod keeps its place.
  await delay(3_000)
  await runs('first')
  await isStopped('second')
  expect(await released(true)).toContain('may be swapped out again')
  await isStopped('first')
  await runs('second')
})

it('A pod that is deleted while it is out returns, and gets its SIGTERM', async () => {
  await bothOnOneGpu()
  await world.api.delete(PODS, { namespace: 'default', name: 'first' })
  kubelet.setBusy('second', false)
  await vi.waitFor(() => {
    if (!kubelet.gotTerm('first')) throw new Error(`${JSON.stringify(agent.agent.report())} ${stateText()}`)
  }, WAIT)
})

it('A pod that is deleted while it is out and no operator runs returns under the next one', async () => {
  await bothOnOneGpu()
  await world.operators[0]?.stop()
  await world.api.delete(PODS, { namespace: 'default', name: 'first' })
  world.start()
  kubelet.setBusy('second', false)
  await vi.waitFor(() => {
    if (!kubelet.gotTerm('first')) throw new Error(`${JSON.stringify(agent.agent.report())} ${stateText()}`)
  }, WAIT)
})

it('A node that gets its label again has its pods as before', async () => {
  await bothOnOneGpu()
  const label = (enabled: string | null) =>
    world.api.patch(
      NODES,
      { name: 'a' },
      {
        type: 'merge',
        body: { metadata: { labels: { [NODE_LABELS.enabled]: enabled } } },
      },
    )
  const counts = () => world.operators[0]?.placement?.controller.views.counts()
  await label(null)
  await vi.waitFor(() => expect(counts()).toMatchObject({ running: 0 }), WAIT)
  await label('true')
  await vi.waitFor(() => expect(counts(), stateText()).toMatchObject({ running: 2 }), WAIT)
  await isStopped('first')
})

it('Operator and agent that start again leave every pod where it is', async () => {
  await bothOnOneGpu()
  await agent.stop()
  await world.operators[0]?.stop()
  agent = await RunningTestAgent.start()
  world.start()
  await vi.waitFor(
    () => expect(world.operators[1]?.placement?.controller.views.counts().running).toBe(2),
    WAIT,
  )
  await delay(500)
  await isStopped('first')
  await runs('second')
  kubelet.setBusy('second', false)
  await isStopped('second')
  await runs('first')
})

it.each(['operator', 'agent', 'operator and agent'])(
  'Marks, rounds and idle times of pods survive a restart of %s',
  async (restarted) => {
    await bothOnOneGpu()
    const [first, second] = await Promise.all([world.pod('first'), world.pod('second')])
    const key = { name: 'default' }
    const body = { spec: { idleSwapOutSeconds: 86_400 } }
    await world.api.patch(ownResource(CLUSTER_GPU_POLICY), key, { type: 'merge', body })
    kubelet.setBusy('second', false)
    const known = () => {
      const { cluster } = world.operators.at(-1)!.placement!.controller
      const { placement } = cluster.tasks.get(second.metadata.uid ?? '')!
      if (placement === null || placement.wantsGpu) throw new Error('second is not idle')
      const { round, marks } = placement.gpus[0]!.rounds.non_p0
      return { round, marks: [...marks], idleSince: placement.idleSince }
    }
    const idleMs = () => agent.agent.report().pods.find(({ pod }) => pod === second.metadata.uid)?.idle_ms
    // On a busy machine it may seem idle for a moment before it has seen that it should be.
    await vi.waitFor(() => expect(idleMs()).toBeGreaterThan(1_000), WAIT)
    const before = await vi.waitFor(known, WAIT)
    expect(before.marks.map(([pod]) => pod)).toEqual([first.metadata.uid])
    skippedMs = HOUR_MS
    if (restarted.includes('operator')) await world.operators[0]?.stop()
    if (restarted.includes('agent')) {
      await agent.stop()
      agent = await RunningTestAgent.start()
    }
    if (restarted.includes('operator')) world.start()
    const after = await vi.waitFor(known, WAIT)
    expect(after).toMatchObject({ round: before.round, marks: before.marks })
    expect(after.idleSince).toBeLessThanOrEqual(before.idleSince)
    expect(idleMs()).toBeGreaterThanOrEqual(HOUR_MS)
  },
)

it('Without an operator nothing moves; a release brings every pod back', async () => {
  await bothOnOneGpu()
  await world.operators[0]?.stop()
  kubelet.setBusy('second', false)
  await delay(1_500)
  await isStopped('first')
  await agent.stop()
  await isStopped('first')
  agent = await RunningTestAgent.start()
  expect(await agent.agent.release()).toEqual([])
  await runs('first')
})

it('The GPUNode says whether an agent reports, and what follows for the percentage', async () => {
  await agent.stop()
  const gpus = JSON.stringify([{ uuid: 'a-GPU-0', model: 'X', vram_mib: 24 * GIB }])
  const body = { metadata: { annotations: { [NODE_GPUS]: gpus } } }
  await world.api.patch(NODES, { name: 'a' }, { type: 'merge', body })
  world.start()
  await addPod('first', '20Gi')
  await runs('first')
  await addPod('second', '20Gi')
  const message = () =>
    vi.waitFor(async () => {
      const found = (await world.pod('second')).status?.conditions?.find(
        ({ type }) => type === ADMITTED_CONDITION,
      )
      expect(found?.message).toContain('no agent runs on the nodes')
    }, WAIT)
  const agentReady = async () =>
    (await world.status('a')).conditions?.find(({ type }) => type === 'AgentReady')
  await message()
  await vi.waitFor(async () => expect((await agentReady())?.message).toContain('100% has no effect'), WAIT)
  agent = await RunningTestAgent.start()
  await vi.waitFor(async () => expect((await agentReady())?.status).toBe('True'), WAIT)
})
