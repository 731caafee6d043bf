/** A request wakes a pod: the agent as it runs on a node, and an operator over an API server in memory. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { AGENT_CALLER, startAgentServer } from '../../operator/adapters/agent-server.ts'
import type { CallerServer } from '../../operator/adapters/caller-server.ts'
import { renewedCertificates, renewedClient } from '../../operator/adapters/own-certificates.ts'
import type { Container } from '../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { CLUSTER_GPU_POLICY } from '../../operator/contract/policies.ts'
import { ownResource, PODS } from '../../operator/ports/kube-api.ts'
import { type RunningAgent, startAgent } from '../../services/operator/agent.ts'
import { freePort } from '../support/free-port.ts'
import { FakeKubelet } from '../support/kubernetes/fake-kubelet.ts'
import { aClusterPolicy } from '../support/kubernetes/objects.ts'
import { OperatorWorld } from '../support/kubernetes/operator-world.ts'
import { WAIT } from '../support/wait.ts'

const INVENTORY = { gpus: [{ model: 'X', vram_mib: 240 }], host_swap_mib: 1_024 }
const SERVER = `
require('node:http').createServer((_, answer) => answer.end('answer')).listen(+process.argv[1], '127.0.0.1')`
/** Longer than the test. */
const NO_PROBE = { probeSeconds: 3_600 }

let world: OperatorWorld
let kubelet: FakeKubelet
let folder: string
let server: CallerServer
let agent: RunningAgent
let port: number
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-pod-wake-'))
  port = await freePort()
  world = new OperatorWorld()
  kubelet = new FakeKubelet({ api: world.api, node: 'a', remove: () => Promise.resolve() })
  await world.addNode('a')
  const policy = aClusterPolicy(100)
  const spec = { ...policy.spec, idleSwapOutSeconds: 1, safetyReserveMib: 0 }
  await world.api.create(ownResource(CLUSTER_GPU_POLICY), { ...policy, spec })
  const own = renewedCertificates(null, 'operator', ['localhost'], Date.now())
  server = await startAgentServer({
    ...{ host: '127.0.0.1', port: 0, cert: own.cert, key: own.key, ca: own.authorities, log: () => {} },
    nodeOf: () => Promise.resolve('a'),
    reported: async (report) => (await world.operators.at(-1)?.agentReported(report)) ?? null,
  })
  const { cert, key } = renewedClient(null, AGENT_CALLER, own, Date.now())
  const files = { token: 't', 'ca.crt': own.authorities, 'tls.crt': cert, 'tls.key': key }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  writeFileSync(join(folder, 'inventory.yaml'), JSON.stringify(INVENTORY))
  const operator = { host: 'localhost', port: server.port, certificates: folder }
  agent = await startAgent({
    ...{ node: 'a', stateFolder: join(folder, 'state'), cgroups: kubelet.cgroups, idleAfterMs: 300 },
    ...{ device: 'process', inventory: join(folder, 'inventory.yaml') },
    operator: { ...operator, tokenFile: join(folder, 'token') },
    admin: { host: '127.0.0.1', port: 0 },
    onNote: (line) => world.notes.push(line),
  })
})
afterEach(async () => {
  await agent.stop()
  await server.close()
  await world.stop()
  await kubelet.stop()
  rmSync(folder, { recursive: true })
})

async function addPod(name: string, main: Partial<Container>, wakeOnRequest?: string): Promise<void> {
  await world.addPod(name, '200Mi', (pod) => {
    const annotations = { ...pod.metadata.annotations }
    if (wakeOnRequest !== undefined) annotations[POD_ANNOTATIONS.wakeOnRequest] = wakeOnRequest
    const containers = pod.spec.containers.map((each) => ({ ...each, ...main }))
    return { ...pod, metadata: { ...pod.metadata, annotations }, spec: { ...pod.spec, containers } }
  })
}
const isIn = (name: string, isStopped: boolean): Promise<void> =>
  vi.waitFor(async () => {
    const state = kubelet.stateOf(await world.pod(name))
    if (state === null || (state === 'T') !== isStopped)
      throw new Error(`${name} is ${state}: ${world.notes.join('\n')}`)
  }, WAIT)
const placementOf = async (name: string) => {
  const { uid = '' } = (await world.pod(name)).metadata
  return world.operators.at(-1)?.placement?.controller.views.openTask(uid)?.placement
}

/** The server is out, and another pod has its GPU and no work. */
async function serverIsOut(wakeOnRequest?: string): Promise<void> {
  world.start(NO_PROBE)
  const command = [process.execPath, '-e', SERVER, String(port)]
  await addPod('server', { command, ports: [{ name: 'web', containerPort: port }] }, wakeOnRequest)
  await isIn('server', false)
  kubelet.setBusy('other', true)
  await addPod('other', {})
  await isIn('server', true)
  await isIn('other', false)
  kubelet.setBusy('other', false)
}
const isOutAnd = (isWakeable: boolean): Promise<void> =>
  vi.waitFor(
    async () => expect(await placementOf('server')).toMatchObject({ residency: 'swapped_out', isWakeable }),
    WAIT,
  )

it('A request to a declared port brings a pod back in place of an idle one, and is answered', async () => {
  await serverIsOut()
  // A probe remains: it does not say that requests are all that wakes it.
  await isOutAnd(false)
  const answer = await fetch(`http://127.0.0.1:${port}`)
  expect(await answer.text()).toBe('answer')
  await isIn('other', true)
  await vi.waitFor(async () => expect((await placementOf('server'))?.residency).toBe('resident'), WAIT)
})

it('A pod that only requests wake has no probe, in the next term too; it returns if that ends', async () => {
  await serverIsOut('true')
  await isOutAnd(true)
  await world.operators[0]?.stop()
  world.start(NO_PROBE)
  await isOutAnd(true)
  const key = { namespace: 'default', name: 'server' }
  const body = { metadata: { annotations: { [POD_ANNOTATIONS.wakeOnRequest]: 'false' } } }
  await world.api.patch(PODS, key, { type: 'merge', body })
  await isIn('server', false)
})
