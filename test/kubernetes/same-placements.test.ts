/**
 * The official scheduler and the operator place pods as the simulator does. Pods are created one after the
 * other, and the test ends them at the same steps. Pods that are created together are compared with the
 * recording of the operator.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { newReadNotes, readRecording } from '../../controller/adapters/recording/read-recording.ts'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { PODS, PRIORITY_CLASSES } from '../../operator/ports/kube-api.ts'
import type { Priority } from '../../protocol/units.ts'
import { redecide } from '../../simulator/experiment/recording/redecide.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { placementOf, PlacementsOfEvents, recordedPlacements } from '../support/kubernetes/placements.ts'
import { PlacingWorld, STACK_WAIT } from '../support/kubernetes/placing-world.ts'
import { busyFor, HOUR, node, play, task } from '../support/world-builder.ts'

const NODES = ['n-1', 'n-2', 'n-3', 'n-4'] as const
/** VRAM of each of two GPUs of a node. */
const GIB = [24, 16, 40, 24] as const
const PODS_IN_ALL = 40
/** After every third pod from the ninth on, the oldest one that runs ends. */
const FIRST_END = 9
/** Simulated. Rules about pods that have waited for minutes apply to neither side. */
const STEP_MS = 1_000

interface PlannedPod {
  readonly name: string
  readonly gib: number
  readonly gpus: number
  readonly priority: Priority
}

/** Sizes repeat after 7 pods, classes after 5 and pairs of GPUs after 11, so that all combinations occur. */
const PLAN: readonly PlannedPod[] = Array.from({ length: PODS_IN_ALL }, (_, i) => ({
  name: `pod-${i}`,
  gib: [8, 14, 5, 20, 11, 3, 17][i % 7] ?? 8,
  gpus: i % 11 === 10 ? 2 : 1,
  priority: (i % 5) as Priority,
}))
/** A pod that is created, or the end of the oldest that runs. */
const STEPS: readonly (PlannedPod | 'end')[] = PLAN.flatMap((pod, i) =>
  i >= FIRST_END && i % 3 === 0 ? [pod, 'end' as const] : [pod],
)

type Placements = Readonly<Record<string, string>>

/** What the simulator has placed after each step, and which pods the ends concern. */
async function simulated(): Promise<{
  readonly after: readonly Placements[]
  readonly ended: readonly string[]
}> {
  const ended: string[] = []
  // Which pod is the oldest that runs is known only when the steps before it have been played.
  for (;;) {
    const { after, oldest } = await playedWith(ended)
    if (oldest === null) return { after, ended }
    ended.push(oldest)
  }
}

/** @param ended pods of the first ends. `oldest` is that of the next end; null without one */
async function playedWith(ended: readonly string[]) {
  const ends = STEPS.flatMap((step, i) => (step === 'end' ? [i] : []))
  const last = ends[ended.length] ?? STEPS.length
  const endOf = (name: string): number | null => {
    const place = ended.indexOf(name)
    return place === -1 ? null : (ends[place] ?? 0) * STEP_MS
  }
  const tasks = STEPS.slice(0, last).flatMap((step, i) =>
    step === 'end'
      ? []
      : [
          task({
            ...{ id: step.name, at: i * STEP_MS, gpus: step.gpus, vramMib: step.gib * 1024 },
            ...{ priority: step.priority, work: busyFor(100 * HOUR), cancelAt: endOf(step.name) },
          }),
        ],
  )
  const placements = new PlacementsOfEvents(NODES)
  const after: Placements[] = []
  const placedIn: string[] = []
  await play(
    {
      nodes: NODES.map((name, i) => node({ name, gpus: 2, vramMib: (GIB[i] ?? 24) * 1024 })),
      config: { default_vram_overcommit_percent: 0, safety_reserve_mib: 2_048 },
      tasks,
    },
    {
      untilMs: last * STEP_MS,
      onWorld: (world) => {
        for (let i = 1; i <= last; i += 1)
          world.clock.at(i * STEP_MS - 1, () => after.push(Object.fromEntries(placements.byTask)))
      },
      onEvents: (events) => {
        for (const event of events) {
          placements.take(event)
          if (event.kind === 'task_placed' && event.taskId !== null) placedIn.push(event.taskId)
        }
      },
    },
  )
  const oldest = placedIn.find((name) => placements.byTask.has(name)) ?? null
  return { after, oldest: ended.length < ends.length ? oldest : null }
}

describe.skipIf(whyNoControlPlane('kube-scheduler') !== null)('With the scheduler of Kubernetes', () => {
  const recording = mkdtempSync(join(tmpdir(), 'headroom-recording-'))
  let world: PlacingWorld
  beforeAll(async () => {
    world = await PlacingWorld.start('--recording', recording)
    for (const priority of [0, 1, 2, 3, 4])
      await world.api.create(PRIORITY_CLASSES, { metadata: { name: `headroom-p${priority}` }, value: 1 })
    for (const [i, name] of NODES.entries()) await world.addNode(name, 64, GIB[i] ?? 24, GIB[i] ?? 24)
    // The operator may place pods on each of them.
    for (const name of NODES) await world.applies(name, 0, 'Helm')
  })
  afterEach(removeAll)
  afterAll(async () => {
    await world?.stop()
    rmSync(recording, { recursive: true })
  })

  const addPod = ({ name, gib, gpus, priority }: PlannedPod): Promise<Pod> =>
    world.addPod(name, `${gib}Gi`, '', {
      priorityClassName: `headroom-p${priority}`,
      annotations: { [POD_ANNOTATIONS.gpuCount]: String(gpus) },
    })
  const pods = async (): Promise<readonly Pod[]> =>
    (await world.api.list(PODS)).items as unknown as readonly Pod[]
  const placed = async (): Promise<Placements> =>
    Object.fromEntries(
      (await pods()).flatMap((pod) => {
        const placement = pod.status?.phase === 'Succeeded' ? null : placementOf(pod)
        return placement === null ? [] : [[pod.metadata.name ?? '', placement]]
      }),
    )
  async function removeAll(): Promise<void> {
    await world.plane.kubectl(['delete', 'pods', '--all', '--force', '--wait=false'])
    await vi.waitFor(async () => expect(await pods()).toEqual([]), STACK_WAIT)
  }

  it(`${PODS_IN_ALL} pods get the GPUs of the simulator, at each step`, { timeout: 600_000 }, async () => {
    const { after, ended } = await simulated()
    expect(after).toHaveLength(STEPS.length)
    const ends = [...ended]
    for (const [i, step] of STEPS.entries()) {
      if (step !== 'end') await addPod(step)
      else await world.finish(ends.shift() ?? '')
      await vi.waitFor(async () => expect(await placed()).toEqual(after[i]), STACK_WAIT)
    }
    // Pods have waited, and have been placed when another one ended.
    expect(Object.keys(after.at(-1) ?? {}).length + ended.length).toBeLessThan(PODS_IN_ALL)
  })

  it(`${PODS_IN_ALL} pods that are created together: the recording decides them again`, async () => {
    // On a busy machine the API server does not wait long enough for a webhook.
    await Promise.all(PLAN.map((pod) => vi.waitFor(() => addPod(pod), STACK_WAIT)))
    // The rest waits.
    await vi.waitFor(async () => {
      const bound = Object.keys(await placed())
      const isWaiting = (pod: Pod): boolean => JSON.stringify(pod.status).includes('WaitingForVRAM')
      const waiting = (await pods()).filter(isWaiting).map(({ metadata }) => metadata.name ?? '')
      expect(new Set([...bound, ...waiting])).toEqual(new Set(PLAN.map(({ name }) => name)))
    }, STACK_WAIT)
    const all = await pods()
    world.operator.process.kill('SIGTERM')
    expect(await world.operator.ended).toBe(0)
    const entries = [...readRecording(recording, newReadNotes())]
    const again = await redecide(entries)
    expect([again.starts, again.difference]).toEqual([1, null])
    process.stdout.write(`decided again: ${again.decisions} decisions, ${again.events} events\n`)
    const recorded = recordedPlacements(entries, NODES)
    for (const pod of all) {
      const placement = placementOf(pod)
      if (placement !== null)
        expect([pod.metadata.name, recorded.get(pod.metadata.uid ?? '')]).toEqual([
          pod.metadata.name,
          placement,
        ])
    }
  })
})
