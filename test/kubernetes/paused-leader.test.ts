/**
 * A leader is stopped between its claim and its Binding, and its request arrives after another operator has
 * taken over and has given the VRAM to another pod: nothing is given twice
 * (make test-kubernetes-storm; a few turns in make test-kubernetes).
 */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { CLASS_LABEL, NODE_GPUS } from '../../operator/contract/names.ts'
import { GPU_NODE, type GPUNodeStatus } from '../../operator/contract/policies.ts'
import { ownResource } from '../../operator/ports/kube-api.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { count } from '../faults/fault-cluster.ts'
import { ApiGate, type Asked } from '../support/kubernetes/api-gate.ts'
import type { Component } from '../support/kubernetes/component.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { historyOf } from '../support/kubernetes/history.ts'
import { Stack } from '../support/kubernetes/stack.ts'
import { judge } from './placement-judge.ts'

const TURNS = count('KUBERNETES_STORM_TURNS', 5)
/** An interrupted series continues with this turn. */
const FROM = count('KUBERNETES_STORM_TURNS_FROM', 1)
const SEED = process.env['KUBERNETES_STORM_SEED'] ?? '1'
const WAIT = { timeout: 90_000, interval: 50 }
const GPU_MIB = 24_576
const MISSING = whyNoControlPlane('kube-scheduler', 'kube-controller-manager')

/** What happens to the pod while its leader is stopped. */
const MEANWHILE = ['nothing', 'a P0 pod comes', 'it is deleted for another pod', 'it is made again'] as const
/** What the leader has sent. */
const HELD = ['binding', 'binding', 'binding', 'claim'] as const
/** The first turns are one of each. */
const FIRST = [...MEANWHILE.map((each) => [each, 'binding'] as const), [MEANWHILE[1], 'claim'] as const]

describe.skipIf(MISSING !== null || TURNS < FROM)('A leader that is stopped while it binds', () => {
  const gates: ApiGate[] = []
  let stack: Stack
  beforeAll(async () => {
    stack = await Stack.start({
      ...{ nodes: [], keepsHistory: true, operatorOptions: ['--lease', '2s'] },
      serverOf: async (plane) => {
        const gate = await ApiGate.start(plane)
        gates.push(gate)
        return gate.url
      },
    })
    const annotations = { [NODE_GPUS]: JSON.stringify([{ uuid: 'GPU-0', vram_mib: GPU_MIB }]) }
    await stack.addNode({ name: 'one', annotations })
    const urgent = { metadata: { name: 'urgent', labels: { [CLASS_LABEL]: 'P0' } }, value: 1_000 }
    await stack.plane.apply([
      { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', ...urgent, preemptionPolicy: 'Never' },
      {
        ...{ apiVersion: 'headroom.dev/v1alpha1', kind: 'ClusterGPUPolicy', metadata: { name: 'default' } },
        spec: { safetyReserveMib: 0 },
      },
    ])
  })
  afterAll(() => stack?.stop())

  const leader = (): Promise<Component> =>
    vi.waitFor(async () => {
      const found = await stack.leader()
      if (found === null) throw new Error('no operator leads')
      return found
    }, WAIT)
  const bound = (names: readonly string[]): Promise<string> =>
    vi.waitFor(() => {
      const found = names.find((name) => stack.pod(name)?.spec.nodeName !== undefined)
      if (found === undefined) throw new Error(`none of ${names.join()} is bound: ${stack.output}`)
      return found
    }, WAIT)
  const addPod = (name: string, spec: object = {}) => stack.addPod({ name, vram: '20Gi', spec })
  const remove = (name: string) =>
    stack.plane
      .raw('DELETE', `/api/v1/namespaces/default/pods/${name}`, {
        ...{ apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 },
      })
      .catch((error: Error) => {
        if (!error.message.includes(' 404 ')) throw error
      })
  const claims = async (): Promise<GPUNodeStatus['claims']> =>
    ((await stack.api.get(ownResource(GPU_NODE), { name: 'one' }))['status'] as GPUNodeStatus).claims

  async function turn(number: number): Promise<void> {
    const random = createSeededRandom(`${SEED}/${number}`).stream('paused leader')
    const anyOf = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!
    const [meanwhile, what] = FIRST[number - 1] ?? [anyOf(MEANWHILE), anyOf(HELD)]
    const continuesFirst = random() < 0.5
    const [name, other] = [`pod-${number}`, `other-${number}`]
    const stopped = await leader()
    const gate = gates[stack.operators.indexOf(stopped)]!
    const caught = gate.next(what === 'binding' ? isBindingOf(name) : isClaimOf(name))
    await addPod(name)
    const held = await Promise.race([caught, delay(WAIT.timeout)])
    if (held === undefined) throw new Error(`turn ${number}: ${stopped.name} sent no ${what}`)
    stopped.member.signal('SIGSTOP')
    if (what === 'binding') expect((await claims())?.map(({ podName }) => podName)).toEqual([name])
    if (meanwhile === 'it is deleted for another pod' || meanwhile === 'it is made again') await remove(name)
    if (meanwhile === 'it is made again') await addPod(name)
    else if (meanwhile !== 'nothing') await addPod(other, { priorityClassName: 'urgent' })
    const next = meanwhile === 'nothing' || meanwhile === 'it is made again' ? name : other
    expect(await bound([name, other]), `turn ${number}: ${meanwhile}`).toBe(next)
    expect(await leader()).not.toBe(stopped)
    if (continuesFirst) stopped.member.signal('SIGCONT')
    // Its claim, its Binding or its repair of them: none may change what the new leader has decided.
    const code = await held.pass()
    stopped.member.signal('SIGCONT')
    expect(code, `turn ${number}: the ${what} of the stopped leader`).toBeGreaterThanOrEqual(400)
    const holders = stack.pods.filter(({ spec }) => spec.nodeName === 'one')
    expect(holders.map(({ metadata }) => metadata.name)).toEqual([next])
  }

  async function removeAll(): Promise<void> {
    for (const { metadata } of stack.pods)
      if (metadata.namespace === 'default') await remove(metadata.name ?? '')
    await vi.waitFor(async () => expect((await claims()) ?? []).toEqual([]), WAIT)
  }

  it.each(Array.from({ length: TURNS - FROM + 1 }, (_, i) => FROM + i))(
    `Turn %i of ${TURNS}, seed ${SEED}: what it sent is refused after the takeover`,
    async (number) => {
      const repeat =
        `make test-kubernetes-storm KUBERNETES_STORM_SEED=${SEED} ` +
        `KUBERNETES_STORM_TURNS_FROM=${number} KUBERNETES_STORM_TURNS=${number}`
      const done = turn(number).then(removeAll)
      await done.catch(async (error: unknown) => {
        for (const { member } of stack.operators) member.signal('SIGCONT')
        const file = join(tmpdir(), `headroom-paused-leader-${SEED}-${number}.log`)
        const objects = await stack.plane.kubectl(['get', 'pods,gpunodes,leases', '-A', '-o', 'yaml'])
        writeFileSync(file, `${repeat}\n${String(error)}\n${objects}\n${stack.output}`)
        await removeAll()
        throw new Error(`${repeat}; outputs in ${file}`, { cause: error })
      })
    },
    300_000,
  )

  it('At no version of the history did the GPU have more than its VRAM', async () => {
    const history = await historyOf(stack.plane.etcdUrl, (key) => key.startsWith('/registry/pods/'))
    const gpus = new Map([['GPU-0', { node: 'one', physicalMib: GPU_MIB, percent: 0 }]])
    const { overbooked, bound: many } = judge(history, gpus)
    expect(overbooked).toEqual([])
    expect(many).toBeGreaterThanOrEqual(TURNS - FROM + 1)
  })
})

function isBindingOf(name: string) {
  return ({ method, path }: Asked): boolean => method === 'POST' && path.endsWith(`/pods/${name}/binding`)
}

function isClaimOf(name: string) {
  return ({ method, path, body }: Asked): boolean =>
    method === 'PUT' && path.includes('/gpunodes/') && body.includes(`"podName":"${name}"`)
}
