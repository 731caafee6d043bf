/**
 * The whole way of a pod on a real API server with the real scheduler: admission, gate, claim, extender,
 * binding. Nodes are objects without a kubelet; a test ends pods by their status.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { AgentClient } from '../../operator/adapters/agent-client.ts'
import { CLASS_LABEL, GROUP_LABEL, POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { rightsOf } from '../support/kubernetes/account.ts'
import { agentAccount } from '../support/kubernetes/components.ts'
import { type ControlPlane, whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { aClusterPolicy } from '../support/kubernetes/objects.ts'
import { PlacingWorld, STACK_WAIT } from '../support/kubernetes/placing-world.ts'
import { kubectlHeadroom } from '../support/kubernetes/plugin.ts'

describe.skipIf(whyNoControlPlane('kube-scheduler') !== null)('With the scheduler of Kubernetes', () => {
  let world: PlacingWorld
  let plane: ControlPlane

  beforeAll(async () => {
    world = await PlacingWorld.start()
    plane = world.plane
  })
  afterAll(() => world?.stop())

  /** An agent with the certificate of all agents, and this token. */
  async function reportWith(token: string): Promise<void> {
    const certificates = await agentAccount(plane, 'one')
    const tokenFile = join(certificates, 'token')
    writeFileSync(tokenFile, token)
    const port = await world.agentsPort()
    const client = new AgentClient({ host: 'localhost', port, certificates, tokenFile })
    await client.report({ node: 'one', host_swap_mib: 0, wait_ms: 0, pods: [] }).finally(() => client.close())
  }

  it('Pods get GPUs by the binding, and the next one waits with its reason until one ends', async () => {
    await world.addNode('one', 8, 24)
    await world.addPod('first', '10Gi', 'one')
    await world.addPod('second', '10Gi', 'one')
    const [first, second] = [await world.bound('first'), await world.bound('second')]
    for (const { metadata, spec } of [first, second]) {
      expect(metadata.annotations?.[POD_ANNOTATIONS.gpuUuids]).toBe('one-GPU-0')
      expect(spec.schedulingGates).toBeUndefined()
    }
    await world.addPod('third', '10Gi', 'one')
    expect(await world.waiting('third')).toMatch(/10 GiB|10,240 MiB/)
    expect(await plane.kubectl(['get', 'pod', 'third'])).toContain('SchedulingGated')
    await vi.waitFor(async () => {
      const described = await plane.kubectl(['describe', 'pod', 'third'])
      expect(described).toMatch(/WaitingForVRAM .* headroom\.dev\/operator/)
    }, STACK_WAIT)
    const why = await kubectlHeadroom(plane, 'explain', 'third')
    expect(why.stderr).toBe('')
    expect(why.stdout).toMatch(/state +waits for VRAM[^]*why +Waiting for[^]*nodes +one: 4Gi free/)
    await world.finish('first')
    await world.bound('third')
    await vi.waitFor(async () => {
      const names = (await world.gpuNode('one')).claims?.map(({ podName }) => podName)
      expect(names).toHaveLength(2)
      expect(names).toEqual(expect.arrayContaining(['second', 'third']))
    }, STACK_WAIT)
    expect(await plane.kubectl(['get', 'gn', 'one'])).toMatch(/24576 +24576/)
  })

  it('A node without enough CPU gives way to one that has it', async () => {
    // The smallest GPU that fits is on the node without CPU.
    await world.addNode('weak', 1, 16)
    await world.addNode('strong', 8, 24)
    await world.addPod('cpu', '8Gi', '', { cpu: '4' })
    expect((await world.bound('cpu')).spec.nodeName).toBe('strong')
  })

  it('An operator that is killed returns and gives nothing twice', async () => {
    await world.addNode('two', 8, 24)
    await world.addPod('kept', '20Gi', 'two')
    await world.bound('kept')
    world.operator.process.kill('SIGKILL')
    await world.operator.ended
    await world.addPod('later', '20Gi', 'two')
    await world.addPod('small', '1Gi', 'two')
    await world.startOperator()
    await world.bound('small')
    await world.waiting('later')
    await world.finish('kept')
    await world.bound('later')
  })

  it('A policy applies at once, and its status says to how many nodes', async () => {
    await plane.kubectl(
      ['apply', '-f', '-'],
      JSON.stringify({
        apiVersion: 'headroom.dev/v1alpha1',
        kind: 'ClusterGPUPolicy',
        ...aClusterPolicy(50),
      }),
    )
    await vi.waitFor(async () => {
      expect((await world.gpuNode('one')).overcommit).toEqual({ percent: 50, source: 'ClusterGPUPolicy' })
      expect(await plane.kubectl(['get', 'cgp'])).toMatch(/default +50 .* 4 +True/)
    }, STACK_WAIT)
  })

  it('The plugin of kubectl lists nodes, finds what is missing, and releases pods', async () => {
    const nodes = await kubectlHeadroom(plane, 'nodes')
    expect(nodes.stdout).toMatch(/^NODE +STATE[^]*\none +NoAgent +1 +24Gi +36Gi/)
    const json = await kubectlHeadroom(plane, 'nodes', '-o', 'json')
    expect(JSON.parse(json.stdout)).toHaveLength(4)
    const doctor = await kubectlHeadroom(plane, 'doctor')
    expect([doctor.code, doctor.stderr]).toEqual([1, ''])
    expect(doctor.stdout).toMatch(/ok +kubernetes +v1\.36/)
    expect(doctor.stdout).toMatch(/ok +GPUNode +has every field/)
    expect(doctor.stdout).toMatch(/ok +admission +the webhook set the gate/)
    expect(doctor.stdout).toMatch(/fail +agent of one +No agent reports/)
    expect(doctor.stdout).toMatch(/fail +scheduler +there is no Deployment headroom-scheduler/)
    await world.addPod('stuck', '24Gi', 'one')
    const refused = await kubectlHeadroom(plane, 'release', 'stuck')
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining('Use --replace')])
    const replaced = await kubectlHeadroom(plane, 'release', 'stuck', '--replace')
    expect([replaced.code, replaced.stderr]).toEqual([0, ''])
    const { metadata, spec } = await world.pod('stuck')
    expect([metadata.labels, spec.schedulerName, spec.schedulingGates]).toEqual([
      ...[undefined, 'default-scheduler', undefined],
    ])
    const absent = await kubectlHeadroom(plane, 'explain', 'absent', '-n', 'default')
    expect([absent.code, absent.stderr]).toEqual([4, 'headroom: pods "absent" not found\n'])
    const elsewhere = await kubectlHeadroom(plane, 'nodes', '--context', 'none')
    expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining(': none')])
  })

  it('Labels of a PriorityClass and a namespace give their pods a class and a group', async () => {
    await world.addNode('team', 8, 24)
    await plane.kubectl(['create', 'namespace', 'ml'])
    await plane.kubectl(['create', 'priorityclass', 'urgent', '--value=1000'])
    const label = (kind: string, name: string, text: string) =>
      plane.kubectl(['label', kind, name, text, '--overwrite'])
    await label('node', 'team', `${GROUP_LABEL}=team`)
    await label('namespace', 'ml', `${GROUP_LABEL}=team`)
    await label('priorityclass', 'urgent', `${CLASS_LABEL}=P0`)
    await world.addPod('ml/first', '20Gi', '')
    expect((await world.bound('ml/first')).spec.nodeName).toBe('team')
    await world.addPod('ml/plain', '20Gi', '')
    await world.waiting('ml/plain')
    await world.addPod('ml/later', '20Gi', '', { priorityClassName: 'urgent' })
    await world.waiting('ml/later')
    const why = await kubectlHeadroom(plane, 'explain', 'later', '-n', 'ml')
    expect(why.stdout).toMatch(/requests +20Gi on one GPU, P0,[^]*nodes +team: /)
    await world.finish('ml/first')
    expect((await world.bound('ml/later')).spec.nodeName).toBe('team')
    expect((await world.pod('ml/plain')).spec.nodeName).toBeUndefined()
    const scope = { scopeName: 'PriorityClass', operator: 'In', values: ['urgent'] }
    const hard = { pods: '1' }
    const quota = {
      ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'urgent', namespace: 'ml' } },
      ...{ spec: { hard, scopeSelector: { matchExpressions: [scope] } } },
    }
    await plane.kubectl(['create', '-f', '-'], JSON.stringify(quota))
    // As the controller of quotas writes it.
    const status = JSON.stringify({ status: { hard, used: { pods: '1' } } })
    await plane.kubectl([
      ...['patch', 'resourcequota', 'urgent', '-n', 'ml', '--subresource=status', '--type=merge'],
      ...['-p', status],
    ])
    await world.addPod('ml/other', '20Gi', '')
    // The API server may not have read the quota yet, and then creates the pod.
    let tries = 0
    await vi.waitFor(() => {
      const more = world.addPod(`ml/more-${(tries += 1)}`, '20Gi', '', { priorityClassName: 'urgent' })
      return expect(more).rejects.toThrow('exceeded quota: urgent')
    }, STACK_WAIT)
    await label('priorityclass', 'urgent', `${CLASS_LABEL}=high`)
    await vi.waitFor(async () => {
      const described = await plane.kubectl(['describe', 'priorityclass', 'urgent'])
      expect(described).toMatch(/InvalidClass .*must be P0, P1, P2, P3 or P4, not "high"/)
    }, STACK_WAIT)
  })

  it('The operator used every right of its roles, and was refused nothing', async () => {
    const bodies = { spec: { nodeName: 'one', vramOvercommitPercent: 20 } }
    await plane.kubectl(
      ['apply', '-f', '-'],
      JSON.stringify({
        ...{ apiVersion: 'headroom.dev/v1alpha1', kind: 'VendorNodePolicy', metadata: { name: 'one' } },
        ...bodies,
      }),
    )
    await vi.waitFor(async () => expect(await plane.kubectl(['get', 'vnp'])).toContain('True'), STACK_WAIT)
    // The GPUNode of a node that is gone.
    const left = { apiVersion: 'headroom.dev/v1alpha1', kind: 'GPUNode', metadata: { name: 'gone' } }
    await plane.kubectl(['apply', '-f', '-'], JSON.stringify(left))
    const gpuNodes = () => plane.kubectl(['get', 'gpunodes'])
    await vi.waitFor(async () => expect(await gpuNodes()).not.toContain('gone'), STACK_WAIT)
    await expect(reportWith('no-token')).rejects.toThrow('the token is not that of an agent')
    world.operator.process.kill('SIGTERM')
    expect(await world.operator.ended).toBe(0)
    expect(rightsOf(plane, 'operator')).toEqual({ forbidden: [], unused: [] })
  })
})
