/**
 * Tasks of GPU 0 in containers of a podman of their own. It has separate network and mounts, as in
 * `make test-containers`, but not separate processes: the driver knows a process by its id on the host.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Gpu } from './cluster.ts'
import { say } from './say.ts'

const PROGRAMS = ['podman', 'conmon', 'runc', 'busybox', 'nats-server']
const NAMESPACES = ['--net', '--mount', '--fork', '--kill-child']

export async function runInContainers(gpu: Gpu): Promise<void> {
  const why = whyNot()
  if (why !== null) return say(`no tasks in containers: ${why}`)
  const folder = mkdtempSync(join(tmpdir(), 'headroom-gpu-containers-'))
  try {
    const program = [process.execPath, join(import.meta.dirname, 'container-tasks.ts'), folder]
    const child = spawn('unshare', [...NAMESPACES, ...program, JSON.stringify(gpu)], { stdio: 'inherit' })
    const code = await new Promise((resolve) => child.once('exit', resolve))
    if (code !== 0) throw new Error('the tasks in containers failed')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function whyNot(): string | null {
  if (process.getuid?.() !== 0) return 'run it as root'
  const missing = PROGRAMS.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0)
  if (missing.length > 0) return `missing ${missing.join(', ')}`
  const { status, stderr } = spawnSync('unshare', [...NAMESPACES, 'true'], { encoding: 'utf8' })
  return status === 0 ? null : `root has no permission for it here: ${stderr.trim()}`
}
