// Package sdks tests package retryotel with the SDKs of OpenTelemetry, its OTLP exporters, otelhttp and gRPC. It is a
// module of its own, so that they are not required by the users of retryotel.
package sdks
