/** The Helm chart as helm renders it. */
import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import type { Rule } from './account.ts'
import type { ControlPlane } from './control-plane.ts'

const ROOT = join(import.meta.dirname, '../../..')
export const CHART = join(ROOT, 'deploy/helm/headroom')

export interface Rendered {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly rules?: readonly Rule[]
  readonly spec?: {
    readonly template?: {
      readonly spec: { readonly containers: readonly { readonly image: string; readonly args?: string[] }[] }
    }
  }
}

export function helm(...args: readonly string[]): string {
  return execFileSync(join(ROOT, '.tools/helm'), args, { encoding: 'utf8', stdio: 'pipe' })
}

/** In the cluster; its output. */
export async function helmOn(plane: ControlPlane, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, HOME: plane.folder }
  const all = ['--kubeconfig', plane.kubeconfig, ...args]
  return (await promisify(execFile)(join(ROOT, '.tools/helm'), all, { env })).stdout
}

export function rendered(...args: readonly string[]): readonly Rendered[] {
  const version = ['--kube-version', '1.36.4', '--namespace', 'headroom']
  const text = helm('template', 'headroom', CHART, ...version, ...args)
  return parseAllDocuments(text).flatMap((each) => (each.toJS() === null ? [] : [each.toJS() as Rendered]))
}

/** Arguments of the first container of a Deployment or DaemonSet. */
export const argsOf = (name: string, ...values: readonly string[]): readonly string[] =>
  rendered(...values).find(
    ({ kind, metadata }) => ['Deployment', 'DaemonSet'].includes(kind) && metadata.name === name,
  )?.spec?.template?.spec.containers[0]?.args ?? []

/**
 * The chart as an earlier version would be: other images, and a ClusterGPUPolicy without a field that exists
 * now.
 */
export function olderChart(folder: string, field: string): string {
  const older = mkdtempSync(join(folder, 'older-'))
  cpSync(CHART, older, { recursive: true })
  const edit = (name: string, change: (text: string) => string): void => {
    const [file, before] = [join(older, name), readFileSync(join(older, name), 'utf8')]
    const after = change(before)
    if (after === before) throw new Error(`${name} has not changed`)
    writeFileSync(file, after)
  }
  edit('Chart.yaml', (text) => text.replaceAll(/^(version|appVersion): .*$/gm, `$1: ${OLDER_VERSION}`))
  edit('files/crds/clustergpupolicies.yaml', (text) =>
    text.replace(new RegExp(`^( +)${field}:\\n(?:\\1 .*\\n)+`, 'm'), ''),
  )
  return older
}

export const OLDER_VERSION = '0.0.9'
