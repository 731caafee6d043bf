/** Components of the operator stack as processes of their own, each with the rights of the chart. */
import { vi } from 'vitest'
import { admissionPolicies } from '../../../operator/admission/admission-policies.ts'
import { webhookConfigurations } from '../../../operator/admission/webhook-configurations.ts'
import { PODS, SECRETS } from '../../../operator/ports/kube-api.ts'
import { freePort } from '../free-port.ts'
import { type RunningCommand, startHeadroom } from '../running-command.ts'
import { componentAccount, STACK_NAMESPACE } from './account.ts'
import type { ControlPlane } from './control-plane.ts'
import { aPod } from './objects.ts'

/** Returns once the API server calls it. */
export async function startAdmissionOn(plane: ControlPlane): Promise<RunningCommand> {
  const [port, kubeconfig] = [await freePort(), await componentAccount(plane, 'admission')]
  await apply(plane, [
    secretNamed('headroom-admission'),
    ...webhookConfigurations({ url: `https://localhost:${port}` }, null),
    ...admissionPolicies(STACK_NAMESPACE),
  ])
  const admission = startHeadroom([
    ...['operator', 'admission', '--kubeconfig', kubeconfig, '--namespace', STACK_NAMESPACE],
    ...['--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0', '--dns-name', 'localhost'],
    ...['--helper-image', 'registry.example/agent:1'],
  ])
  await admission.says(/listens on/)
  // The API server reads the configurations a moment after they are stored.
  await vi.waitFor(
    async () => {
      const pod = { ...aPod(), metadata: { ...aPod().metadata, name: 'probe' } }
      const made = await plane.client().create(PODS, { ...pod }, { isDryRun: true })
      if (!JSON.stringify(made).includes('headroom-scheduler')) throw new Error(admission.output())
    },
    { timeout: 60_000, interval: 200 },
  )
  return admission
}

/** @param port of the extender */
export async function startOperatorOn(
  plane: ControlPlane,
  port: number,
  ...options: readonly string[]
): Promise<RunningCommand> {
  const kubeconfig = await componentAccount(plane, 'operator')
  await apply(plane, [...OPERATOR_SECRETS.map(secretNamed)])
  const operator = startHeadroom([
    ...['operator', 'run', '--kubeconfig', kubeconfig, '--namespace', STACK_NAMESPACE, '--lease', '3s'],
    ...['--listen', `127.0.0.1:${port}`, '--agents', '127.0.0.1:0', '--admin', '127.0.0.1:0'],
    ...['--dns-name', 'localhost', ...options],
  ])
  await operator.says(/listens on/)
  return operator
}

const OPERATOR_SECRETS = ['headroom-extender', 'headroom-scheduler', 'headroom-agent']

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

async function apply(plane: ControlPlane, items: readonly object[]): Promise<void> {
  await plane.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
}
