/** Components of the operator stack as processes of their own, each with the rights of the chart. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { vi } from 'vitest'
import { admissionPolicies } from '../../../operator/admission/admission-policies.ts'
import { webhookConfigurations } from '../../../operator/admission/webhook-configurations.ts'
import { type KubeApi, PODS, SECRETS } from '../../../operator/ports/kube-api.ts'
import { freePort } from '../free-port.ts'
import { FROM_SOURCES_ENV } from '../headroom-command.ts'
import { type RunningCommand, startHeadroom } from '../running-command.ts'
import { componentAccount, STACK_NAMESPACE } from './account.ts'
import { CHART } from './chart.ts'
import type { ControlPlane } from './control-plane.ts'
import { aPod } from './objects.ts'

const OPERATOR_TEMPLATE = join(CHART, 'templates/operator.yaml')

/** Returns once the API server calls it. */
export async function startAdmissionOn(
  plane: ControlPlane,
  ...options: readonly string[]
): Promise<RunningCommand> {
  const port = await freePort()
  const kubeconfig = await prepareAdmission(plane, port)
  const admission = startHeadroom([...admissionArguments(kubeconfig, { port, adminPort: 0 }), ...options])
  await admission.says(/listens on/)
  await untilAdmitted(plane.client(), () => admission.output())
  return admission
}

/** Returns the kubeconfig of admission. @param port that the API server calls */
export async function prepareAdmission(plane: ControlPlane, port: number): Promise<string> {
  const kubeconfig = await componentAccount(plane, 'admission')
  await plane.apply([
    secretNamed('headroom-admission'),
    ...webhookConfigurations({ url: `https://localhost:${port}` }, null),
    ...admissionPolicies(STACK_NAMESPACE),
  ])
  return kubeconfig
}

/** The API server reads the configurations a moment after they are stored. */
export async function untilAdmitted(api: KubeApi, output: () => string): Promise<void> {
  await vi.waitFor(
    async () => {
      const pod = { ...aPod(), metadata: { ...aPod().metadata, name: 'probe' } }
      const made = await api.create(PODS, { ...pod }, { isDryRun: true })
      if (!JSON.stringify(made).includes('headroom-scheduler')) throw new Error(output())
    },
    { timeout: 60_000, interval: 200 },
  )
}

interface AdmissionPorts {
  readonly port: number
  readonly adminPort: number
}

export function admissionArguments(
  kubeconfig: string,
  { port, adminPort }: AdmissionPorts,
): readonly string[] {
  return [
    ...['operator', 'admission', '--kubeconfig', kubeconfig, '--namespace', STACK_NAMESPACE],
    ...['--listen', `127.0.0.1:${port}`, '--admin', `127.0.0.1:${adminPort}`, '--dns-name', 'localhost'],
    ...['--helper-image', 'registry.example/agent:1'],
  ]
}

/** @param port of the extender */
export async function startOperatorOn(
  plane: ControlPlane,
  port: number,
  ...options: readonly string[]
): Promise<RunningCommand> {
  const kubeconfig = await prepareOperator(plane)
  const ports = { port, agentsPort: 0, adminPort: 0 }
  const args = [...operatorArguments(kubeconfig, ports), '--lease', '3s', ...options]
  const operator = startHeadroom(args, operatorEnv())
  await operator.says(/listens on/)
  return operator
}

/** The options of Node.js are those of the chart. */
export function operatorEnv(): Readonly<Record<string, string>> {
  const [, options] = /"nodeOptions" "([^"]+)"/.exec(readFileSync(OPERATOR_TEMPLATE, 'utf8')) ?? []
  if (options === undefined) throw new Error(`${OPERATOR_TEMPLATE} has no options of Node.js`)
  return { NODE_OPTIONS: `${FROM_SOURCES_ENV['NODE_OPTIONS'] ?? ''} ${options}` }
}

/** Returns the kubeconfig of the operator. */
export async function prepareOperator(plane: ControlPlane): Promise<string> {
  const kubeconfig = await componentAccount(plane, 'operator')
  await plane.apply(OPERATOR_SECRETS.map(secretNamed))
  return kubeconfig
}

interface OperatorPorts extends AdmissionPorts {
  readonly agentsPort: number
}

export function operatorArguments(
  kubeconfig: string,
  { port, agentsPort, adminPort }: OperatorPorts,
): readonly string[] {
  return [
    ...['operator', 'run', '--kubeconfig', kubeconfig, '--namespace', STACK_NAMESPACE],
    ...['--listen', `127.0.0.1:${port}`, '--agents', `127.0.0.1:${agentsPort}`],
    ...['--admin', `127.0.0.1:${adminPort}`, '--dns-name', 'localhost'],
  ]
}

const OPERATOR_SECRETS = ['headroom-extender', 'headroom-scheduler', 'headroom-agent', 'headroom-forecast']

export interface AgentPlan {
  readonly node: string
  /** GPUs and host memory. */
  readonly inventory: object
  readonly cgroups: string
  readonly operatorPort: number
  readonly adminPort: number
}

/**
 * Returns a folder with the certificates of an agent and the token that a kubelet would bind to its pod: the
 * node is in it.
 */
export async function agentAccount(plane: ControlPlane, node: string): Promise<string> {
  const account = { metadata: { name: 'headroom-agent', namespace: STACK_NAMESPACE } }
  await plane.apply([{ apiVersion: 'v1', kind: 'ServiceAccount', ...account }])
  const folder = join(plane.folder, `agent-${node}`)
  mkdirSync(folder, { recursive: true })
  await writeCertificates(plane, 'headroom-agent', folder)
  const token = await plane.kubectl([
    ...['create', 'token', 'headroom-agent', '--namespace', STACK_NAMESPACE, '--audience', 'headroom'],
    ...['--bound-object-kind', 'Node', '--bound-object-name', node, '--duration', '24h'],
  ])
  writeFileSync(join(folder, 'token'), token, { mode: 0o600 })
  return folder
}

/** Arguments of the agent of a node, with declared GPUs. */
export async function agentArguments(plane: ControlPlane, plan: AgentPlan): Promise<readonly string[]> {
  const { node, inventory, cgroups, operatorPort, adminPort } = plan
  const folder = await agentAccount(plane, node)
  writeFileSync(join(folder, 'inventory.yaml'), JSON.stringify(inventory))
  return [
    ...['operator', 'agent', '--token', join(folder, 'token'), '--node', node],
    ...['--operator', `localhost:${operatorPort}`, '--certificates', folder],
    ...['--state', join(folder, 'state'), '--cgroups', cgroups, '--admin', `127.0.0.1:${adminPort}`],
    ...['--device', 'process', '--inventory', join(folder, 'inventory.yaml'), '--idle-after', '1s'],
  ]
}

/** As the kubelet writes the files of a Secret that a pod mounts. */
export async function writeCertificates(plane: ControlPlane, secret: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const certificates = await callerCertificates(plane, secret)
  for (const name of ['ca.crt', 'tls.crt', 'tls.key'])
    writeFileSync(join(folder, name), Buffer.from(certificates[name] ?? '', 'base64'), { mode: 0o600 })
}

/** The certificate with which a caller of the operator calls, by the name of the file. */
export async function callerCertificates(
  plane: ControlPlane,
  name = 'headroom-scheduler',
): Promise<Readonly<Record<string, string>>> {
  const secret = await plane.client().get(SECRETS, { namespace: STACK_NAMESPACE, name })
  return secret['data'] as Readonly<Record<string, string>>
}

function secretNamed(name: string): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: STACK_NAMESPACE, name } }
}
