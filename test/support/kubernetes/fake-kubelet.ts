/**
 * A kubelet without containers: each pod that is bound to its node is one process in a cgroup, named as
 * containerd names it. Where this machine lets a test make cgroups, they are real; else a folder with the
 * same files. It runs the command of the pod; without one it is busy while the file of its pod exists, and
 * notes that it got SIGTERM.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pidsIn } from '../../../gpu-server/guard/process-table.ts'
import type { EnvVar, Pod } from '../../../operator/contract/kubernetes.ts'
import { type KubeApi, PODS } from '../../../operator/ports/kube-api.ts'
import { killed } from '../live-cluster.ts'

/**
 * An idle one waits without a process of its own, and looks seldom: 10 ms of CPU time between two samples
 * count as use of the GPU.
 */
const PROGRAM = `
trap 'echo term >> "$1.term"; exit 0' TERM
exec 3<> <(:)
while :; do
  if [ -e "$1" ]; then i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; else read -rt 0.25 -u 3; fi
done`
const HIERARCHIES = ['/sys/fs/cgroup', '/sys/fs/cgroup/pids']

export interface FakeKubeletOptions {
  readonly api: KubeApi
  readonly node: string
  /** All pods of the cluster. Absent: they are listed. */
  readonly pods?: () => Iterable<Pod>
  /** Once its process has ended. */
  readonly remove: (pod: Pod) => Promise<void>
}

interface RunningPod {
  readonly child: ChildProcess
  /** Of its container. */
  readonly id: string
  readonly folder: string
  isEnded: boolean
  /** The pod is deleted: its process got SIGTERM. */
  toldAt: number | null
  /** What the status of the pod says. */
  phase: 'Running' | 'Succeeded' | 'Failed' | null
}

const LOOK_EVERY_MS = 20

export class FakeKubelet {
  /** For the agent. */
  readonly cgroups: string
  readonly areCgroupsReal: boolean
  readonly #options: FakeKubeletOptions
  readonly #files = mkdtempSync(join(tmpdir(), 'headroom-kubelet-'))
  readonly #running = new Map<string, RunningPod>()
  #isStopped = false
  readonly #loop: Promise<void>

  constructor(options: FakeKubeletOptions) {
    this.#options = options
    const real = HIERARCHIES.map(madeCgroup).find((path) => path !== null) ?? null
    this.areCgroupsReal = real !== null
    this.cgroups = real ?? mkdtempSync(join(tmpdir(), 'headroom-cgroups-'))
    this.#loop = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#loop
    for (const { folder, child } of this.#running.values()) {
      child.kill('SIGKILL')
      // Those too that it started; they may be stopped.
      for (const pid of pidsIn(join(folder, 'cgroup.procs'))) if (pid > 1) killed(pid)
    }
    for (const pod of this.#running.values()) while (!pod.isEnded) await delay(5)
    for (let tries = 0; tries < 200 && !this.#removeCgroups(); tries += 1) await delay(10)
    rmSync(this.#files, { recursive: true })
  }

  setBusy(name: string, isBusy: boolean): void {
    if (isBusy) writeFileSync(join(this.#files, name), '')
    else rmSync(join(this.#files, name), { force: true })
  }

  gotTerm(name: string): boolean {
    return existsSync(join(this.#files, `${name}.term`))
  }

  /** Null: it does not run. */
  processOf({ metadata: { uid = '' } }: Pod): number | null {
    const running = this.#running.get(uid)
    return running === undefined || running.isEnded ? null : (running.child.pid ?? null)
  }

  /** T: stopped; null: it does not run. */
  stateOf({ metadata: { uid = '' } }: Pod): string | null {
    const { pid } = this.#running.get(uid)?.child ?? {}
    try {
      const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
      return text.slice(text.lastIndexOf(')') + 2).split(' ')[0] ?? null
    } catch {
      return null
    }
  }

  async #run(): Promise<void> {
    const { api, node, pods } = this.#options
    for (; !this.#isStopped; await delay(LOOK_EVERY_MS)) {
      try {
        const all =
          pods === undefined ? ((await api.list(PODS)).items as unknown as readonly Pod[]) : [...pods()]
        const own = all.filter(({ spec }) => spec.nodeName === node)
        for (const pod of own) await this.#look(pod)
        const known = new Set(own.map(({ metadata }) => metadata.uid))
        // It was deleted without waiting for its end.
        for (const [uid, { child, isEnded }] of this.#running)
          if (!known.has(uid) && !isEnded) child.kill('SIGKILL')
      } catch {
        // The API server is away, or another one has changed the pod: the next look finds it as it is.
      }
    }
  }

  async #look(pod: Pod): Promise<void> {
    const { uid = '', deletionTimestamp } = pod.metadata
    const running = this.#running.get(uid) ?? null
    if (deletionTimestamp === undefined) return this.#report(pod, running ?? this.#start(pod))
    if (running === null || running.isEnded) return this.#options.remove(pod)
    if (running.toldAt === null) running.child.kill('SIGTERM')
    running.toldAt ??= performance.now()
    const { terminationGracePeriodSeconds: graceSeconds = 30 } = pod.spec
    if (performance.now() - running.toldAt > graceSeconds * 1000) running.child.kill('SIGKILL')
  }

  async #report({ metadata, spec, status: before }: Pod, running: RunningPod | null): Promise<void> {
    if (running === null) return
    const { exitCode } = running.child
    const phase = !running.isEnded ? 'Running' : exitCode === 0 ? 'Succeeded' : 'Failed'
    if (running.phase === phase) return
    const state = phase === 'Running' ? { running: {} } : { terminated: { exitCode: exitCode ?? 137 } }
    const container = {
      ...{ name: spec.containers[0]?.name ?? 'main', containerID: `containerd://${running.id}`, state },
      ...{ image: spec.containers[0]?.image ?? '', imageID: '', ready: phase === 'Running', restartCount: 0 },
    }
    const ready = { type: 'Ready', status: phase === 'Running' ? 'True' : 'False' }
    const conditions = [...(before?.conditions ?? []).filter(({ type }) => type !== 'Ready'), ready]
    const status = { phase, conditions, containerStatuses: [container] }
    const { namespace = '', name = '' } = metadata
    const body = { metadata: { uid: metadata.uid }, status }
    const key = { namespace, name }
    await this.#options.api.patch(PODS, key, { type: 'merge', body }, { subresource: 'status' })
    running.phase = phase
  }

  /** Null: it is over already. */
  #start(pod: Pod): RunningPod | null {
    const { metadata, spec, status } = pod
    if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return null
    const { uid = '', name = '' } = metadata
    const [container] = spec.containers
    const id = Buffer.from(`${uid}${name}`).toString('hex').padEnd(64, '0').slice(-64)
    const folder = join(this.cgroups, `kubepods-pod${uid}.slice`, `cri-containerd-${id}.scope`)
    mkdirSync(folder, { recursive: true })
    const [program = '', ...args] = container?.command ?? [
      'bash',
      '-c',
      PROGRAM,
      'pod',
      join(this.#files, name),
    ]
    const env = { PATH: process.env['PATH'] ?? '', ...environmentOf(pod, container?.env ?? []) }
    const child = spawn(program, args, { stdio: 'ignore', env })
    appendFileSync(join(folder, 'cgroup.procs'), `${child.pid}\n`)
    const running: RunningPod = { child, id, folder, isEnded: false, toldAt: null, phase: null }
    child.once('exit', () => (running.isEnded = true))
    this.#running.set(uid, running)
    return running
  }

  /** False: a process has not left yet. */
  #removeCgroups(): boolean {
    if (!this.areCgroupsReal) rmSync(this.cgroups, { recursive: true, force: true })
    const folders = [...this.#running.values()].map(({ folder }) => folder)
    for (const path of [...folders, ...folders.map((folder) => join(folder, '..')), this.cgroups])
      try {
        rmdirSync(path)
      } catch {
        // It is gone, or not empty yet.
      }
    return !existsSync(this.cgroups)
  }
}

/** Variables with a value, or with a field of the pod, as a kubelet resolves them. */
export function environmentOf({ metadata, spec }: Pod, variables: readonly EnvVar[]): Record<string, string> {
  const { annotations = {}, name = '', namespace = '', uid = '' } = metadata
  const fields: Readonly<Record<string, string>> = {
    ...{ 'metadata.name': name, 'metadata.namespace': namespace, 'metadata.uid': uid },
    'spec.nodeName': spec.nodeName ?? '',
    ...Object.fromEntries(
      Object.entries(annotations).map(([key, value]) => [`metadata.annotations['${key}']`, value]),
    ),
  }
  return Object.fromEntries(
    variables.map((each) => [
      each.name,
      each.value ?? fields[each.valueFrom?.fieldRef?.fieldPath ?? ''] ?? '',
    ]),
  )
}

/** Null: not on this machine. */
function madeCgroup(hierarchy: string): string | null {
  const path = join(hierarchy, `headroom-test-${process.pid}-${Math.trunc(performance.now())}`)
  try {
    if (!existsSync(join(hierarchy, 'cgroup.procs'))) return null
    mkdirSync(path)
    if (existsSync(join(path, 'cgroup.procs'))) return path
    rmdirSync(path)
    return null
  } catch {
    return null
  }
}
