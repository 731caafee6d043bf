/** Forecasts, for people. Pure. */

/** Why there is none, without the code and the advice that programs get; the page asks again by itself. */
export function noForecastWords(because: string | null): string {
  const words = (because ?? 'nothing was foretold')
    .replace(/^[A-Z_]+: /, '')
    .replace(/; ask again in some seconds.*$/, '')
  const sentence = words.charAt(0).toUpperCase() + words.slice(1)
  return sentence.endsWith('.') ? sentence : `${sentence}.`
}
