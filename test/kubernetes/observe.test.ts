/** Observe mode as processes, on a real API server: what would happen is reported, and nothing happens. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { ADMITTED_CONDITION, POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { type KubeApi, type KubeObject, PODS } from '../../operator/ports/kube-api.ts'
import { freePort } from '../support/free-port.ts'
import { rightsOf } from '../support/kubernetes/account.ts'
import { admissionArguments, prepareAdmission, startOperatorOn } from '../support/kubernetes/components.ts'
import { ControlPlane, whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { IdleAgent } from '../support/kubernetes/idle-agent.ts'
import { addReadyNode } from '../support/kubernetes/nodes.ts'
import { aPod } from '../support/kubernetes/objects.ts'
import { STACK_WAIT } from '../support/kubernetes/placing-world.ts'
import { startHeadroom, type RunningCommand } from '../support/running-command.ts'

describe.skipIf(whyNoControlPlane() !== null)('A stack that observes', () => {
  let plane: ControlPlane
  let api: KubeApi
  let operator: RunningCommand
  let agent: IdleAgent

  beforeAll(async () => {
    plane = await ControlPlane.start()
    api = plane.client()
    const port = await freePort()
    const kubeconfig = await prepareAdmission(plane, port)
    // The chart leaves out the policy that stands in for admission.
    const kinds = 'validatingadmissionpolicies,validatingadmissionpolicybindings'
    await plane.kubectl(['delete', kinds, 'headroom-admission'])
    const admission = startHeadroom([...admissionArguments(kubeconfig, { port, adminPort: 0 }), '--observe'])
    await admission.says(/listens on/)
    operator = await startOperatorOn(plane, await freePort(), '--observe', '--overcommit', '100')
    await addReadyNode(api, { name: 'one', cpus: 8, labels: {}, annotations: {} })
    const agentsPort = async (): Promise<number> => {
      const [, found] = await operator.says(/for agents on 127\.0\.0\.1:(\d+)/)
      return Number(found)
    }
    agent = new IdleAgent({ world: { plane, agentsPort }, node: 'one', vramMib: [24_576] })
  })
  afterAll(async () => {
    await agent?.stop()
    await plane?.stop()
  })

  async function create(name: string, vram: string | undefined, node?: string) {
    const warnings: string[] = []
    const pod = aPod({ [POD_ANNOTATIONS.podVram]: vram })
    const spec = { ...pod.spec, ...(node === undefined ? {} : { nodeName: node }) }
    const object = { ...pod, metadata: { ...pod.metadata, namespace: 'default', name }, spec }
    const onWarning = (text: string): unknown => warnings.push(text)
    const made = await api.create(PODS, object as unknown as KubeObject, { onWarning })
    return { pod: made as unknown as Pod, warnings }
  }
  const pod = async (name: string): Promise<Pod> =>
    (await api.get(PODS, { namespace: 'default', name })) as unknown as Pod
  const condition = (name: string, reason: string): Promise<string> =>
    vi.waitFor(async () => {
      const { status } = await pod(name)
      const found = status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
      if (found?.reason !== reason) throw new Error(`${JSON.stringify(status)} ${operator.output()}`)
      return found.message ?? ''
    }, STACK_WAIT)

  it('leaves pods as they are, and warns of what it would refuse', async () => {
    await vi.waitFor(async () => {
      await api.delete(PODS, { namespace: 'default', name: 'wrong' }).catch(() => {})
      const { warnings } = await create('wrong', undefined)
      expect(warnings).toEqual([expect.stringContaining('Headroom only observes; it would refuse the pod')])
    }, STACK_WAIT)
    const { pod: made } = await create('runs', '20Gi', 'one')
    expect([made.spec.schedulerName, made.spec.schedulingGates]).toEqual(['default-scheduler', undefined])
    expect(made.spec.containers[0]?.env).toBeUndefined()
    expect(made.spec.containers[0]?.resources?.limits).toBeUndefined()
  })

  it('says of each pod what it would do, and gates, binds and swaps none', async () => {
    expect(await condition('runs', 'WouldRun')).toMatch(/It is on one\. It would get VRAM on one now/)
    await create('waits', '20Gi')
    await create('too', '20Gi')
    expect(await condition('too', 'WouldWait')).toMatch(/It has no node yet\. Waiting/)
    for (const name of ['waits', 'too']) {
      const { spec, metadata } = await pod(name)
      expect([spec.nodeName, spec.schedulingGates]).toEqual([undefined, undefined])
      expect(metadata.annotations?.[POD_ANNOTATIONS.gpuUuids]).toBeUndefined()
    }
    // The GPUs of the node are those that the agent reports.
    expect([...agent.pods.values()].filter(({ order }) => order !== 0)).toEqual([])
  })

  it('used no right to change a pod or to bind one', async () => {
    operator.process.kill('SIGTERM')
    expect(await operator.ended).toBe(0)
    const { forbidden, unused } = rightsOf(plane, 'operator')
    expect(forbidden).toEqual([])
    expect(unused).toEqual(expect.arrayContaining(['patch pods', 'create pods/binding']))
    expect(unused).not.toContain('patch pods/status')
  })
})
