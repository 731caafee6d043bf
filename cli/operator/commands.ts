/** `headroom operator`: the components of the operator stack. Their actions are loaded when called. */
import { Option, type Command } from 'commander'
import { DEFAULT_ADMISSION } from '../../operator/admission/admission-options.ts'
import { calls, repeatable, withExamples, type SetExit } from '../command/command-shape.ts'

const ADMIN = '0.0.0.0:8081'

export function addOperatorCommands(program: Command, setExit: SetExit): void {
  const operator = program
    .command('operator')
    .description('components of the operator stack for Kubernetes; the Helm chart runs them')
  withExamples(
    inCluster(
      operator
        .command('admission')
        .description('serve the webhooks that check and change pods with the label gpu-runtime'),
    )
      .option('--listen <address:port>', 'where the API server calls, over HTTPS', '0.0.0.0:8443')
      .option('--admin <address:port>', 'where /metrics, /livez and /readyz are', ADMIN)
      .option('--secret <name>', 'Secret that keeps the certificates', 'headroom-admission')
      .option('--service <name>', 'Service by which the API server calls', 'headroom-admission')
      .option('--configuration <name>', 'name of both webhook configurations', 'headroom-admission')
      .option('--dns-name <name>', 'further name in the certificate; may be repeated', repeatable, [])
      .addOption(
        new Option('--swap-memory <how>', 'memory of pods that may be swapped out')
          .choices(['raise', 'require', 'ignore'])
          .default(DEFAULT_ADMISSION.swapMemory),
      )
      .option('--runtime-class <name>', 'RuntimeClass of GPU pods that name none'),
    'headroom operator admission --namespace headroom --kubeconfig ~/.kube/config',
  ).action(calls(setExit, () => import('./admission.ts'), 'admission'))
}

function inCluster(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'outside the cluster: how to reach it; else the ServiceAccount of the pod')
    .option('--context <name>', 'context of the kubeconfig; else its current one')
    .option('--namespace <name>', 'namespace of the stack; else POD_NAMESPACE')
}
