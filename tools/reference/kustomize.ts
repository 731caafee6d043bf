/**
 * deploy/kubernetes/operator, rendered from the Helm chart by the helm of `make kubernetes-tools`. A test
 * holds that it is made from the chart as the chart is now, one with kubectl that both have the same objects.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { byCodeUnits } from '../../controller/structures/order.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHART = join(ROOT, 'deploy/helm/headroom')
const COMMAND = 'node tools/reference/kustomize.ts'
export const KUSTOMIZE_FOLDER = join(ROOT, 'deploy/kubernetes/operator')
export const OBJECTS_FILE = join(KUSTOMIZE_FOLDER, 'objects.yaml')

/**
 * With the defaults, without hooks: kubectl runs none. The image of the helper for probes is an argument,
 * which the images of a kustomization do not reach.
 */
export function chartText(): string {
  const place = ['--namespace', 'headroom', '--kube-version', '1.36.4']
  const values = ['--set', 'swap.livenessProbes=noswap']
  const args = ['template', 'headroom', CHART, '--no-hooks', ...place, ...values]
  return execFileSync(join(ROOT, '.tools/helm'), args, { encoding: 'utf8' })
}

function chartDigest(): string {
  const hash = createHash('sha256')
  const files = readdirSync(CHART, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .toSorted(byCodeUnits)
  for (const file of files) hash.update(file.slice(CHART.length)).update('\0').update(readFileSync(file))
  return hash.digest('hex')
}

export function headText(): string {
  return `# Made by \`${COMMAND}\` from the Helm chart with the digest ${chartDigest()}.\n`
}

if (import.meta.main) writeFileSync(OBJECTS_FILE, headText() + chartText())
