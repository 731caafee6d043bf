/** What pods see and how they are moved, with the whole stack: agents are real, pods are processes. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { STACK_WAIT } from '../support/kubernetes/placing-world.ts'
import { Stack } from '../support/kubernetes/stack.ts'

const MISSING = whyNoControlPlane('kube-scheduler', 'kube-controller-manager')
const GPU_MIB = 24_576
/** The half of a GPU and more: two of them take turns. */
const VRAM = '20Gi'
const on = (node: string) => ({ nodeSelector: { 'kubernetes.io/hostname': node } })

/** How pods say that they stay in VRAM. */
const STAYING = {
  annotation: { annotations: { [POD_ANNOTATIONS.swapFromVram]: 'false' }, spec: {} },
  variable: {
    annotations: {},
    spec: {
      containers: [{ name: 'main', image: 'x:1', env: [{ name: 'VENDOR_SWAP_FROM_VRAM', value: '0' }] }],
    },
  },
  // Only the agent can see it: admission has set 1, and the image sets 0.
  image: {
    annotations: {},
    command: ['env', 'VENDOR_SWAP_FROM_VRAM=0', 'sh', '-c', 'while :; do sleep 0.05; done'],
    spec: {},
  },
} as const
const KINDS = Object.keys(STAYING) as readonly (keyof typeof STAYING)[]

describe.skipIf(MISSING !== null)('With the whole stack', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-pods-'))
  let stack: Stack
  beforeAll(async () => {
    stack = await Stack.start({
      nodes: [
        { name: 'two-gpus', gpusMib: [GPU_MIB, GPU_MIB] },
        ...['control', ...KINDS].map((kind) => ({ name: `of-${kind}`, gpusMib: [GPU_MIB] })),
      ],
      policy: { defaultVramOvercommitPercent: 100, idleSwapOutSeconds: 1, safetyReserveMib: 0 },
      operatorOptions: ['--probe', '2s'],
    })
  })
  afterAll(async () => {
    await stack?.stop()
    rmSync(folder, { recursive: true })
  })

  const running = (name: string): Promise<Pod> =>
    vi.waitFor(() => {
      const pod = stack.pod(name)
      if (pod?.status?.phase === 'Running') return pod
      throw new Error(`${name}: ${JSON.stringify(pod?.status)} ${stack.output}`)
    }, STACK_WAIT)
  const stateOf = (name: string): string | null => {
    const pod = stack.pod(name)
    return pod === undefined ? null : (stack.kubelets.get(pod.spec.nodeName ?? '')?.stateOf(pod) ?? null)
  }

  it('A container sees the GPUs of the binding, and whether it may be swapped out', async () => {
    const seenBy = async (name: string, annotations: Readonly<Record<string, string>>): Promise<string[]> => {
      const file = join(folder, name)
      const variables = ['NVIDIA_VISIBLE_DEVICES', 'CUDA_VISIBLE_DEVICES', 'VENDOR_SWAP_FROM_VRAM']
      const script = `echo ${variables.map((each) => `"$${each}"`).join(' ')} > ${file}; exec sleep 1000`
      const spec = on('two-gpus')
      await stack.addPod({ name, vram: VRAM, command: ['sh', '-c', script], annotations, spec })
      const { metadata } = await running(name)
      const seen = await vi.waitFor(() => readFileSync(file, 'utf8').trim().split(' '), STACK_WAIT)
      expect(seen[0]).toBe(metadata.annotations?.[POD_ANNOTATIONS.gpuUuids])
      return seen
    }
    const stays = { [POD_ANNOTATIONS.swapFromVram]: 'false' }
    const seen = [await seenBy('first', stays), await seenBy('second', stays)]
    const [zero, one] = ['two-gpus-GPU-0', 'two-gpus-GPU-1'] as const
    const each = [zero, one].map((uuid) => [uuid, uuid, '0'])
    expect(seen).toEqual(expect.arrayContaining(each))
    for (const name of ['first', 'second']) await stack.plane.kubectl(['delete', 'pod', name])
    const both = `${zero},${one}`
    expect(await seenBy('both', { [POD_ANNOTATIONS.gpuCount]: '2' })).toEqual([both, both, '1'])
  })

  it('A pod that stays in VRAM is never stopped, also while no operator answers', async () => {
    for (const kind of KINDS) await stack.addPod(pairOf(kind, 'first', STAYING[kind]))
    await stack.addPod(pairOf('control', 'first', {}))
    for (const kind of [...KINDS, 'control']) await running(`${kind}-first`)
    for (const kind of [...KINDS, 'control']) await stack.addPod(pairOf(kind, 'second', {}))
    // Both pods of the control have left VRAM: the others have had time for it.
    for (const name of ['control-first', 'control-second', 'control-first'])
      await vi.waitFor(() => {
        expect(areRunning()).toBe(true)
        if (stateOf(name) !== 'T') throw new Error(`${name} is ${stateOf(name)}: ${stack.output}`)
      }, STACK_WAIT)
    for (const kind of KINDS) expect(stack.pod(`${kind}-second`)?.spec.nodeName).toBeUndefined()

    for (const operator of stack.operators) await operator.stop()
    const before = ['control-first', 'control-second'].map(stateOf)
    await vi.waitFor(() => {
      expect(areRunning()).toBe(true)
      for (const agent of stack.agents.values()) expect(agent.isReady).toBe(false)
    }, STACK_WAIT)
    expect(['control-first', 'control-second'].map(stateOf)).toEqual(before)
  })

  const areRunning = (): boolean =>
    KINDS.every((kind) => stateOf(`${kind}-first`) !== 'T' && stateOf(`${kind}-first`) !== null)
})

function pairOf(
  kind: string,
  place: string,
  given: { readonly annotations?: object; readonly command?: readonly string[]; readonly spec?: object },
) {
  const { annotations = {}, command, spec = {} } = given
  return {
    ...{ name: `${kind}-${place}`, vram: VRAM, annotations: { ...annotations } as Record<string, string> },
    ...(command === undefined ? {} : { command }),
    spec: { ...on(`of-${kind}`), ...spec },
  }
}
