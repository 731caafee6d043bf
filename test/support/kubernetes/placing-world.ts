/**
 * Admission, operator and the official scheduler on a control plane. Nodes are objects without a kubelet, and
 * a test ends pods by their status.
 */
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { ADMITTED_CONDITION, NODE_GPUS, POD_ANNOTATIONS } from '../../../operator/contract/names.ts'
import { GPU_NODE, type GPUNodeStatus } from '../../../operator/contract/policies.ts'
import { type KubeApi, ownResource, PODS } from '../../../operator/ports/kube-api.ts'
import { freePort } from '../free-port.ts'
import type { RunningCommand } from '../running-command.ts'
import { callerCertificates, startAdmissionOn, startOperatorOn, writeCertificates } from './components.ts'
import { ControlPlane } from './control-plane.ts'
import { addReadyNode } from './nodes.ts'
import { aPod } from './objects.ts'

/** For what several processes do, on a busy machine. */
export const STACK_WAIT = { timeout: 90_000, interval: 100 }

export interface PlacedPod {
  readonly cpu?: string
  readonly priorityClassName?: string
  readonly annotations?: Readonly<Record<string, string>>
}

export class PlacingWorld {
  readonly plane: ControlPlane
  readonly api: KubeApi
  operator: RunningCommand
  /** Of the extender. */
  readonly #port: number

  private constructor(plane: ControlPlane, port: number, operator: RunningCommand) {
    this.plane = plane
    this.api = plane.client()
    this.#port = port
    this.operator = operator
  }

  /** @param options of the operator */
  static async start(...options: readonly string[]): Promise<PlacingWorld> {
    const plane = await ControlPlane.start()
    const port = await freePort()
    const certificates = join(plane.folder, 'forecast')
    await startAdmissionOn(plane, '--operator', `localhost:${port}`, '--certificates', certificates)
    const operator = await startOperatorOn(plane, port, ...options)
    await writeCertificates(plane, 'headroom-forecast', certificates)
    await plane.startScheduler(port, await callerCertificates(plane))
    return new PlacingWorld(plane, port, operator)
  }

  stop(): Promise<void> {
    return this.plane.stop()
  }

  /** The one before has ended. */
  async startOperator(...options: readonly string[]): Promise<void> {
    this.operator = await startOperatorOn(this.plane, this.#port, ...options)
  }

  /** As an upgrade to these options does. */
  async upgradeOperator(...options: readonly string[]): Promise<void> {
    this.operator.process.kill('SIGTERM')
    await this.operator.ended
    await this.startOperator(...options)
  }

  /** Port where agents report. */
  async agentsPort(): Promise<number> {
    const [, port] = await this.operator.says(/for agents on 127\.0\.0\.1:(\d+)/)
    return Number(port)
  }

  /** @param gib of each GPU; none: its agent reports them */
  async addNode(name: string, cpus: number, ...gib: readonly number[]): Promise<void> {
    const gpus = gib.map((size, index) => ({ uuid: `${name}-GPU-${index}`, vram_mib: size * 1024 }))
    const annotations = gpus.length === 0 ? {} : { [NODE_GPUS]: JSON.stringify(gpus) }
    await addReadyNode(this.api, { name, cpus, labels: { test: name }, annotations })
  }

  /**
   * @param name or `namespace/name`
   * @param node empty: any
   */
  async addPod(name: string, vram: string, node: string, given: PlacedPod = {}): Promise<Pod> {
    const { cpu = '100m', annotations = {}, ...more } = given
    const pod = aPod({ [POD_ANNOTATIONS.podVram]: vram, ...annotations })
    const [main] = pod.spec.containers
    const resources = { requests: { cpu } }
    const selector = node === '' ? {} : { nodeSelector: { test: node } }
    const spec = { containers: [{ ...main, resources }], ...selector, ...more }
    const object = { ...pod, metadata: { ...pod.metadata, ...keyOf(name) }, spec }
    return (await this.api.create(PODS, object)) as unknown as Pod
  }

  async pod(name: string): Promise<Pod> {
    return (await this.api.get(PODS, keyOf(name))) as unknown as Pod
  }

  /** Resolves once it has a node. */
  bound(name: string): Promise<Pod> {
    return vi.waitFor(async () => {
      const pod = await this.pod(name)
      if (pod.spec.nodeName !== undefined) return pod
      throw new Error(`${name}: ${JSON.stringify(pod.status)} ${this.operator.output()} ${this.plane.output}`)
    }, STACK_WAIT)
  }

  /** Resolves with the reason once the pod waits for VRAM. */
  waiting(name: string): Promise<string> {
    return vi.waitFor(async () => {
      const { status } = await this.pod(name)
      const found = status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
      if (found?.reason !== 'WaitingForVRAM') throw new Error(`${name}: ${JSON.stringify(status)}`)
      return found.message ?? ''
    }, STACK_WAIT)
  }

  async finish(name: string): Promise<void> {
    const body = { status: { phase: 'Succeeded' } }
    await this.api.patch(PODS, keyOf(name), { type: 'merge', body }, { subresource: 'status' })
  }

  async gpuNode(name: string): Promise<GPUNodeStatus> {
    return (await this.api.get(ownResource(GPU_NODE), { name }))['status'] as GPUNodeStatus
  }

  /** Resolves once this percentage applies to the node, from this source. */
  applies(name: string, percent: number, source: string): Promise<GPUNodeStatus> {
    return vi.waitFor(async () => {
      const status = await this.gpuNode(name)
      expect(status.overcommit).toEqual({ percent, source })
      return status
    }, STACK_WAIT)
  }
}

function keyOf(pod: string): { readonly namespace: string; readonly name: string } {
  const [name = '', namespace = 'default'] = pod.split('/').toReversed()
  return { namespace, name }
}
