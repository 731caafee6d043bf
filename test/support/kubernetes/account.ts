/** The ServiceAccount of a component with the rights of the Helm chart, and what it used of them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { ControlPlane } from './control-plane.ts'

const ROLES = join(import.meta.dirname, '../../../deploy/helm/headroom/files/roles')
export const STACK_NAMESPACE = 'headroom'

export interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

interface Roles {
  readonly namespace: readonly Rule[]
  readonly cluster: readonly Rule[]
}

export interface AuditLine {
  readonly requestURI: string
  readonly stage: string
  readonly verb: string
  readonly user: { readonly username: string; readonly extra?: Readonly<Record<string, readonly string[]>> }
  readonly objectRef?: { readonly resource: string; readonly subresource?: string; readonly name?: string }
  readonly responseStatus?: { readonly code: number }
}

/** Returns a kubeconfig with the token of the account `headroom-NAME`. */
export async function componentAccount(plane: ControlPlane, name: string): Promise<string> {
  const account = `headroom-${name}`
  const roles = rolesOf(name)
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' }
  const [here, everywhere] = [{ name: account, namespace: STACK_NAMESPACE }, { name: account }]
  const subjects = [{ kind: 'ServiceAccount', ...here }]
  const roleRef = (kind: string): object => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name: account })
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: STACK_NAMESPACE } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: here },
    { ...rbac, kind: 'Role', metadata: here, rules: roles.namespace },
    { ...rbac, kind: 'RoleBinding', metadata: here, subjects, roleRef: roleRef('Role') },
    { ...rbac, kind: 'ClusterRole', metadata: everywhere, rules: roles.cluster },
    { ...rbac, kind: 'ClusterRoleBinding', metadata: everywhere, subjects, roleRef: roleRef('ClusterRole') },
  ]
  await plane.apply(items)
  const token = await plane.kubectl(['create', 'token', account, '-n', STACK_NAMESPACE])
  const config = JSON.parse(readFileSync(plane.kubeconfig, 'utf8')) as { users: object[] }
  const file = join(plane.folder, `${account}.kubeconfig`)
  config.users = [{ name: 'admin', user: { token: token.trim() } }]
  writeFileSync(file, JSON.stringify(config))
  return file
}

/**
 * Requests of the account that were forbidden, and rights that it has never used.
 * @param rules absent: those in the file of the chart
 */
export function rightsOf(plane: ControlPlane, name: string, rules?: readonly Rule[]) {
  const own = requestsOf(plane, name)
  const used = new Set(own.flatMap(rightsIn))
  const { namespace, cluster } = rules === undefined ? rolesOf(name) : { namespace: rules, cluster: [] }
  const granted = [...namespace, ...cluster].flatMap(({ resources, verbs, resourceNames = [''] }) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) => resourceNames.map((each) => `${verb} ${resource} ${each}`.trim())),
    ),
  )
  return {
    forbidden: own
      .filter(({ responseStatus }) => responseStatus?.code === 403)
      .map((line) => rightsIn(line)[1]),
    unused: granted.filter((right) => !used.has(right)),
  }
}

export function requestsOf(plane: ControlPlane, name: string): readonly AuditLine[] {
  const user = `system:serviceaccount:${STACK_NAMESPACE}:headroom-${name}`
  return readFileSync(plane.auditLog, 'utf8')
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as AuditLine]))
    .filter((line) => line.user.username === user && line.stage !== 'RequestReceived')
}

/** Name of the pod whose token was sent. */
export function podIn({ user }: AuditLine): string | undefined {
  return user.extra?.['authentication.kubernetes.io/pod-name']?.[0]
}

/** Of all objects of the resource, and of the one that was named. */
function rightsIn({ verb, objectRef, requestURI }: AuditLine): readonly string[] {
  const { resource = requestURI, subresource, name = '' } = objectRef ?? {}
  const right = `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`
  return [right, `${right} ${name}`]
}

function rolesOf(name: string): Roles {
  return parse(readFileSync(join(ROLES, `${name}.yaml`), 'utf8')) as Roles
}
