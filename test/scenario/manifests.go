package scenario

// service is a Service for the Pods of web.
const service = `apiVersion: v1
kind: Service
metadata:
  name: web-svc
  labels: {app: web}
spec:
  type: LoadBalancer
  ports: [{port: 80}]
  selector: {app: web}
`
