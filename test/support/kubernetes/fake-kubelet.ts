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
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { type KubeApi, PODS } from '../../../operator/ports/kube-api.ts'

const PROGRAM = `
trap 'echo term >> "$1.term"; exit 0' TERM
while :; do
  if [ -e "$1" ]; then i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; else sleep 0.02; fi
done`
const HIERARCHIES = ['/sys/fs/cgroup', '/sys/fs/cgroup/pids']

export interface FakeKubeletOptions {
  readonly api: KubeApi
  readonly node: string
  /** Once its process has ended. */
  readonly remove: (pod: Pod) => Promise<void>
}

interface RunningPod {
  readonly child: ChildProcess
  readonly folder: string
  isEnded: boolean
  isTold: boolean
}

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
    while (!this.#isStopped) {
      const { items } = await this.#options.api.list(PODS)
      for (const pod of items as unknown as readonly Pod[])
        if (pod.spec.nodeName === this.#options.node) await this.#look(pod)
      await delay(20)
    }
  }

  async #look(pod: Pod): Promise<void> {
    const { uid = '', namespace = '', name = '', deletionTimestamp } = pod.metadata
    const running = this.#running.get(uid)
    if (running === undefined && deletionTimestamp === undefined) {
      const id = this.#start(uid, name, pod.spec.containers[0]?.command)
      const started = { name: 'main', containerID: `containerd://${id}`, state: { running: {} } }
      const status = { phase: 'Running', containerStatuses: [started] }
      const key = { namespace, name }
      await this.#options.api.patch(PODS, key, { type: 'merge', body: { status } }, { subresource: 'status' })
    } else if (running !== undefined && deletionTimestamp !== undefined) {
      if (!running.isTold) running.isTold = running.child.kill('SIGTERM')
      if (running.isEnded) await this.#options.remove(pod)
    }
  }

  #start(uid: string, name: string, command?: readonly string[]): string {
    const id = Buffer.from(`${uid}${name}`).toString('hex').padEnd(64, '0').slice(-64)
    const folder = join(this.cgroups, `kubepods-pod${uid}.slice`, `cri-containerd-${id}.scope`)
    mkdirSync(folder, { recursive: true })
    const file = join(this.#files, name)
    const [program = '', ...args] = command ?? ['sh', '-c', PROGRAM, 'pod', file]
    const child = spawn(program, args, { stdio: 'ignore' })
    appendFileSync(join(folder, 'cgroup.procs'), `${child.pid}\n`)
    const running: RunningPod = { child, folder, isEnded: false, isTold: false }
    child.once('exit', () => (running.isEnded = true))
    this.#running.set(uid, running)
    return id
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

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
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
