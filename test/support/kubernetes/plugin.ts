/** `kubectl headroom …`, as kubectl finds and starts it on the PATH. */
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Ended, FROM_SOURCES_ENV, UNMEASURED } from '../headroom-command.ts'
import { type ControlPlane, TOOLS } from './control-plane.ts'

const ROOT = join(import.meta.dirname, '../../..')

export function kubectlHeadroom(plane: ControlPlane, ...args: readonly string[]): Promise<Ended> {
  const folder = join(plane.folder, 'plugin')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'kubectl-headroom')
  const [imported, main] = [join(ROOT, 'cli/require-node.mjs'), join(ROOT, 'cli/kubectl-headroom.ts')]
  writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' --import '${imported}' -- '${main}' "$@"\n`)
  chmodSync(file, 0o755)
  const env = {
    ...{ ...process.env, ...UNMEASURED, ...FROM_SOURCES_ENV },
    ...{ HOME: plane.folder, KUBECONFIG: plane.kubeconfig },
    PATH: `${folder}:${TOOLS}:${process.env['PATH'] ?? ''}`,
  }
  return new Promise((resolve) => {
    execFile(join(TOOLS, 'kubectl'), ['headroom', ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
    )
  })
}
