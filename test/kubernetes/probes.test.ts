/**
 * A pod with a liveness probe, in a namespace that enforces Pod Security `restricted`, is out for long while
 * its agent is killed. The test is the prober of the kubelet: it runs the probe that admission has written,
 * in the namespaces of the container, and counts how often the kubelet would start the container again.
 */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { pidsIn } from '../../gpu-server/guard/process-table.ts'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { type KubeObject, PODS } from '../../operator/ports/kube-api.ts'
import { freePort } from '../support/free-port.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { aPod } from '../support/kubernetes/objects.ts'
import { STACK_WAIT } from '../support/kubernetes/placing-world.ts'
import { buildProbeHelper, hasGo } from '../support/kubernetes/probe-helper.ts'
import { Stack } from '../support/kubernetes/stack.ts'

const WAIT_MS = Number(process.env['KUBERNETES_WAIT_MINUTES'] ?? 1) * 60_000
const GPU_MIB = 24_576
const OWN_NAMESPACES = ['--pid', '--mount', '--fork', '--kill-child', '--mount-proc']
const CONFINED = {
  ...{ allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: { drop: ['ALL'] } },
  seccompProfile: { type: 'RuntimeDefault' },
}
const SERVER = `let n = 0
const server = require('node:http').createServer((_, answer) => answer.end(String((n += 1))))
server.listen(process.argv[1], '127.0.0.1')`

function isMissing(): boolean {
  if (whyNoControlPlane('kube-scheduler', 'kube-controller-manager') !== null) return true
  const why = hasGo()
    ? spawnSync('unshare', [...OWN_NAMESPACES, 'true']).status === 0
      ? null
      : 'this user may not make namespaces'
    : 'Go is not installed'
  if (why !== null) process.stderr.write(`skipped: ${why}\n`)
  return why !== null
}

describe.skipIf(isMissing())('With the whole stack', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-probes-'))
  const helper = join(folder, 'probe')
  let stack: Stack
  beforeAll(async () => {
    buildProbeHelper(helper)
    stack = await Stack.start({
      nodes: [{ name: 'one', gpusMib: [GPU_MIB] }],
      policy: { defaultVramOvercommitPercent: 100, idleSwapOutSeconds: 1, safetyReserveMib: 0 },
    })
  })
  afterAll(async () => {
    await stack?.stop()
    rmSync(folder, { recursive: true })
  })

  async function addServer(port: number): Promise<Pod> {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await stack.plane.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'strict', labels } }])
    // The container begins when its process is in its cgroup.
    const begin = 'until grep -q cri-containerd /proc/self/cgroup; do sleep 0.05; done; exec "$@"'
    const server = [process.execPath, '-e', SERVER, String(port)]
    const pod = aPod({ 'headroom.dev/pod-vram': '20Gi' })
    const container = {
      ...{ name: 'main', image: 'registry.example/server:1', securityContext: CONFINED },
      command: ['sh', '-c', begin, 'sh', 'unshare', ...OWN_NAMESPACES, ...server],
      ports: [{ name: 'http', containerPort: port }],
      livenessProbe: { httpGet: { path: '/', port: 'http' }, periodSeconds: 1 },
    }
    const metadata = { ...pod.metadata, name: 'server', namespace: 'strict' }
    const object: KubeObject = { ...pod, metadata, spec: { containers: [container] } }
    return (await stack.api.create(PODS, object)) as unknown as Pod
  }
  /** Of the server itself: process 1 of its namespace. */
  const serverPid = (): number => {
    const { metadata } = stack.pod('server', 'strict')!
    const slice = join(stack.kubelets.get('one')!.cgroups, `kubepods-pod${metadata.uid}.slice`)
    const [scope = ''] = readdirSync(slice).filter((name) => name.startsWith('cri-containerd-'))
    const inner = pidsIn(join(slice, scope, 'cgroup.procs')).find((pid) =>
      /^NSpid:\s+\d+\s+1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')),
    )
    return inner ?? expect.fail('the server does not run')
  }
  const isStopped = (pid: number): boolean => /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  /** As the kubelet executes it in the container. */
  const probes = (pid: number, [program, ...args]: readonly string[]): Promise<boolean> =>
    new Promise((resolve) => {
      expect(program).toBe('/headroom-probe/probe')
      const env = { ...process.env, HEADROOM_POD_IP: '127.0.0.1' }
      const enter = ['--target', String(pid), '--pid', '--mount', helper, ...args]
      execFile('nsenter', enter, { env }, (error) => resolve(error === null))
    })
  const answers = async (port: number): Promise<number | null> => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(2_000) }).catch(
      () => null,
    )
    return answer === null ? null : Number(await answer.text())
  }

  it(
    'A pod that is out while its agent is killed twice is not started again',
    { timeout: WAIT_MS + 300_000 },
    async () => {
      const port = await freePort()
      const { spec } = await addServer(port)
      const { failureThreshold = 3, exec } = spec.containers[0]?.livenessProbe ?? {}
      const command = exec?.command ?? expect.fail('the probe was not rewritten')
      const first = await vi.waitFor(
        async () => (await answers(port)) ?? expect.fail('it does not answer'),
        STACK_WAIT,
      )
      const pid = serverPid()
      expect(await probes(pid, command)).toBe(true)

      stack.kubelets.get('one')?.setBusy('other', true)
      await stack.addPod({ name: 'other', vram: '20Gi' })
      await vi.waitFor(() => expect(isStopped(pid)).toBe(true), STACK_WAIT)
      // A probe from outside would have had the container started again.
      expect(await answers(port)).toBeNull()

      const agent = stack.agents.get('one')!
      let [failures, restarts, kills, done] = [0, 0, 0, 0]
      const from = performance.now()
      while (performance.now() - from < WAIT_MS) {
        failures = (await probes(pid, command)) ? 0 : failures + 1
        if (failures >= failureThreshold) [restarts, failures] = [restarts + 1, 0]
        done += 1
        expect(isStopped(pid)).toBe(true)
        if (kills < 2 && performance.now() - from > ((kills + 1) * WAIT_MS) / 3) {
          kills += 1
          await agent.end('SIGKILL')
        }
        await pause(1_000)
      }
      process.stdout.write(`out for ${WAIT_MS / 1000} s: ${done} probes, ${kills} kills of the agent\n`)
      expect([restarts, kills]).toEqual([0, 2])
      await stack.plane.kubectl(['delete', 'pod', 'other', '--wait=false'])
      await vi.waitFor(() => expect(isStopped(pid)).toBe(false), STACK_WAIT)
      // It is the same process: its count goes on. The request from outside has waited for it.
      expect(await answers(port)).toBeGreaterThan(first)
      expect(await probes(pid, command)).toBe(true)
    },
  )
})
