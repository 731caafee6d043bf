/** What a dry run of a policy says about waiting pods, on a real API server with operator and scheduler. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { CLUSTER_GPU_POLICY } from '../../operator/contract/policies.ts'
import { ownResource } from '../../operator/ports/kube-api.ts'
import { rightsOf } from '../support/kubernetes/account.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { IdleAgent } from '../support/kubernetes/idle-agent.ts'
import { aClusterPolicy } from '../support/kubernetes/objects.ts'
import { PlacingWorld, STACK_WAIT } from '../support/kubernetes/placing-world.ts'

describe.skipIf(whyNoControlPlane('kube-scheduler') !== null)('A dry run of a policy', () => {
  let world: PlacingWorld
  let agent: IdleAgent

  beforeAll(async () => {
    world = await PlacingWorld.start()
    await world.addNode('one', 8)
    agent = new IdleAgent({ world, node: 'one', vramMib: [24_576] })
    await world.addPod('resident', '20Gi', 'one')
    await world.bound('resident')
    await world.addPod('second', '8Gi', 'one')
    await world.waiting('second')
  })
  afterAll(async () => {
    await agent?.stop()
    await world?.stop()
  })

  const policy = () =>
    JSON.stringify({
      apiVersion: 'headroom.dev/v1alpha1',
      kind: 'ClusterGPUPolicy',
      ...aClusterPolicy(100),
    })
  async function warnings(): Promise<readonly string[]> {
    const found: string[] = []
    const onWarning = (text: string): unknown => found.push(text)
    const how = { isDryRun: true, onWarning }
    await world.api.create(ownResource(CLUSTER_GPU_POLICY), { ...aClusterPolicy(100) }, how)
    return found
  }

  it('says how many waiting pods would start, and changes nothing', async () => {
    const said = await vi.waitFor(async () => {
      const lines = await warnings()
      expect(lines).toHaveLength(3)
      expect(lines[1]).not.toContain('not simulated')
      return lines
    }, STACK_WAIT)
    expect(said[0]).toMatch(/^forecast: 100% on 1 node; schedulable VRAM/)
    expect(said[1]).toMatch(/^forecast: 1 of 1 waiting pod would start within .+ \(without the change 0\); /)
    expect(said[2]).toMatch(/^forecast: simulated from the current state in \d+ pairs of runs over /)
    await world.plane.kubectl(['apply', '--dry-run=server', '-f', '-'], policy())
    expect((await world.api.list(ownResource(CLUSTER_GPU_POLICY))).items).toEqual([])
    expect((await world.pod('second')).spec.nodeName).toBeUndefined()
  })

  it('says without an operator which limits change, and that no wait was simulated', async () => {
    world.operator.process.kill('SIGTERM')
    expect(await world.operator.ended).toBe(0)
    expect(await warnings()).toEqual([
      expect.stringMatching(/^forecast: 100% on 1 node; schedulable VRAM/),
      'forecast: waiting times were not simulated, because the operator did not answer.',
    ])
    for (const name of ['admission', 'operator']) expect(rightsOf(world.plane, name).forbidden).toEqual([])
  })
})
