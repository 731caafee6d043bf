/**
 * Returns the URL of a worker's module by its path below `services/`: `.ts` in a checkout, `.js` in a build
 * (tsc does not rewrite URLs).
 */
export function workerUrl(name: string): URL {
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
  return new URL(`../${name}${extension}`, import.meta.url)
}
